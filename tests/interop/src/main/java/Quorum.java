import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.QuorumInfo;

/** Prints what Admin says of the controllers, as one line {"leader", "voters"}. Argument: the broker. */
public final class Quorum {
    public static void main(String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get(60, TimeUnit.SECONDS);
            var voters = quorum.voters().stream().map(QuorumInfo.ReplicaState::replicaId).sorted().toList();
            System.out.write(Json.line(Map.of("leader", quorum.leaderId(), "voters", voters)));
        }
        System.out.flush();
    }
}
