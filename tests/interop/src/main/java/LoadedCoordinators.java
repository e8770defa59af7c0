import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.TransactionalIdNotFoundException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.utils.Utils;

/**
 * Waits for the coordinators of a cluster. A broker that listens lists no group and no transaction of a partition that
 * it does not lead yet, and says nothing of it. A coordinator that is asked for one name answers when it has loaded.
 */
final class LoadedCoordinators {
    private static final String GROUPS = "__consumer_offsets";
    private static final String TRANSACTIONS = "__transaction_state";

    private LoadedCoordinators() {}

    static void awaitGroups(Admin admin) throws Exception {
        for (String name : nameOfEachPartition(admin, GROUPS)) {
            await(admin.describeConsumerGroups(List.of(name)).all(), GroupIdNotFoundException.class);
        }
    }

    static void awaitTransactions(Admin admin) throws Exception {
        for (String name : nameOfEachPartition(admin, TRANSACTIONS)) {
            await(admin.describeTransactions(List.of(name)).all(), TransactionalIdNotFoundException.class);
        }
    }

    /** Names that nobody uses, one for each partition of the topic; none where the topic does not exist. */
    private static Set<String> nameOfEachPartition(Admin admin, String topic) throws Exception {
        int partitions;
        try {
            partitions = admin.describeTopics(List.of(topic)).allTopicNames().get(60, TimeUnit.SECONDS)
                    .get(topic).partitions().size();
        } catch (ExecutionException error) {
            if (error.getCause() instanceof UnknownTopicOrPartitionException) {
                return Set.of();
            }
            throw error;
        }
        Set<String> names = new HashSet<>();
        Set<Integer> named = new HashSet<>();
        for (int i = 0; named.size() < partitions; i++) {
            String name = "nobody-" + i;
            if (named.add(Utils.abs(name.hashCode()) % partitions)) {
                names.add(name);
            }
        }
        return names;
    }

    private static void await(KafkaFuture<?> described, Class<? extends Exception> notFound) throws Exception {
        try {
            described.get(60, TimeUnit.SECONDS);
        } catch (ExecutionException error) {
            if (!notFound.isInstance(error.getCause())) {
                throw error;
            }
        }
    }
}
