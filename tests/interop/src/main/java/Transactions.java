import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.common.TopicPartition;

/**
 * Prints what the broker says of transactions: a line for each producer of each partition of the topics, named as
 * kraftlog's table names them, and one for each transactional id. Arguments: the broker, then the topics.
 */
public final class Transactions {
    public static void main(String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            producers(admin, List.of(args).subList(1, args.length));
            LoadedCoordinators.awaitTransactions(admin);
            transactions(admin);
        }
        System.out.flush();
    }

    private static void producers(Admin admin, List<String> topics) throws Exception {
        List<TopicPartition> partitions = new ArrayList<>();
        for (var topic : admin.describeTopics(topics).allTopicNames().get(60, TimeUnit.SECONDS).values()) {
            topic.partitions().forEach(p -> partitions.add(new TopicPartition(topic.name(), p.partition())));
        }
        var described = admin.describeProducers(partitions).all().get(60, TimeUnit.SECONDS);
        for (TopicPartition partition : partitions) {
            for (ProducerState state : described.get(partition).activeProducers()) {
                Map<String, Object> line = new HashMap<>();
                line.put("topic", partition.topic());
                line.put("partition", partition.partition());
                line.put("producer_id", state.producerId());
                line.put("producer_epoch", state.producerEpoch());
                line.put("last_sequence", orNull(state.lastSequence()));
                line.put("last_timestamp_ms", state.lastTimestamp());
                line.put("current_transaction_first_offset", orNull(state.currentTransactionStartOffset().orElse(-1)));
                line.put("coordinator_epoch", orNull(state.coordinatorEpoch().orElse(-1)));
                System.out.write(Json.line(line));
            }
        }
    }

    private static Long orNull(long value) {
        return value < 0 ? null : value;
    }

    private static void transactions(Admin admin) throws Exception {
        List<String> ids = admin.listTransactions().all().get(60, TimeUnit.SECONDS).stream()
                .map(TransactionListing::transactionalId)
                .toList();
        var described = admin.describeTransactions(ids).all().get(60, TimeUnit.SECONDS);
        for (String id : ids) {
            TransactionDescription transaction = described.get(id);
            Map<String, Object> line = new HashMap<>();
            line.put("transactional_id", id);
            line.put("producer_id", transaction.producerId());
            line.put("producer_epoch", transaction.producerEpoch());
            line.put("state", transaction.state().toString());
            line.put("timeout_ms", transaction.transactionTimeoutMs());
            line.put("start_timestamp_ms", orNull(transaction.transactionStartTimeMs().orElse(-1)));
            line.put("partitions", transaction.topicPartitions().stream()
                    .map(p -> List.of(p.topic(), p.partition()))
                    .toList());
            System.out.write(Json.line(line));
        }
    }
}
