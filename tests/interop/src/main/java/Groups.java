import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

/**
 * Prints what Admin says of groups, a line for each: {"group", "type", "state", "protocol_type", "offsets"}, and of
 * those that consumers make "assignor", "group_epoch", "target_assignment_epoch" and "members". Argument: the broker.
 */
public final class Groups {
    private final Admin admin;

    private Groups(Admin admin) {
        this.admin = admin;
    }

    public static void main(String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            LoadedCoordinators.awaitGroups(admin);
            new Groups(admin).print();
        }
        System.out.flush();
    }

    private void print() throws Exception {
        Map<String, Map<String, Object>> lines = new TreeMap<>();
        Map<String, ListConsumerGroupOffsetsSpec> offsets = new HashMap<>();
        List<String> ofConsumers = new ArrayList<>();
        for (GroupListing group : get(admin.listGroups().all())) {
            Map<String, Object> line = new TreeMap<>();
            line.put("group", group.groupId());
            line.put("type", group.type().orElseThrow().toString());
            line.put("state", group.groupState().orElseThrow().toString());
            line.put("protocol_type", group.protocol());
            lines.put(group.groupId(), line);
            if (group.type().orElseThrow() != GroupType.SHARE) {
                offsets.put(group.groupId(), new ListConsumerGroupOffsetsSpec());
                ofConsumers.add(group.groupId());
            }
        }
        get(admin.listConsumerGroupOffsets(offsets).all())
                .forEach((group, committed) -> lines.get(group).put("offsets", offsets(committed)));
        get(admin.describeConsumerGroups(ofConsumers).all())
                .forEach((group, description) -> lines.get(group).putAll(described(description)));
        for (Object line : lines.values()) {
            System.out.write(Json.line(line));
        }
    }

    private static List<Object> offsets(
            Map<TopicPartition, org.apache.kafka.clients.consumer.OffsetAndMetadata> committed) {
        List<Object> found = new ArrayList<>();
        committed.forEach((partition, offset) -> {
            List<Object> line = new ArrayList<>(List.of(partition.topic(), partition.partition(), offset.offset()));
            line.add(offset.leaderEpoch().orElse(null));
            line.add(offset.metadata());
            found.add(line);
        });
        return found;
    }

    private static Map<String, Object> described(ConsumerGroupDescription group) {
        Map<String, Object> line = new HashMap<>();
        line.put("assignor", group.partitionAssignor());
        line.put("group_epoch", group.groupEpoch().orElse(null));
        line.put("target_assignment_epoch", group.targetAssignmentEpoch().orElse(null));
        line.put("members", group.members().stream().map(Groups::member).toList());
        return line;
    }

    private static Map<String, Object> member(MemberDescription member) {
        Map<String, Object> line = new HashMap<>();
        line.put("member_id", member.consumerId());
        line.put("instance_id", member.groupInstanceId().orElse(null));
        line.put("client_id", member.clientId());
        line.put("client_host", member.host());
        line.put("member_epoch", member.memberEpoch().orElse(null));
        line.put("assignment", partitions(member.assignment().topicPartitions()));
        line.put("target_assignment", member.targetAssignment()
                .map(target -> partitions(target.topicPartitions()))
                .orElse(null));
        return line;
    }

    private static List<List<Object>> partitions(Iterable<TopicPartition> partitions) {
        List<List<Object>> found = new ArrayList<>();
        partitions.forEach(partition -> found.add(List.of(partition.topic(), partition.partition())));
        return found;
    }

    private static <T> T get(KafkaFuture<T> future) throws Exception {
        return future.get(60, TimeUnit.SECONDS);
    }
}
