import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Carries out the lines on standard input: {"group", "topic", "partition", "offset", "metadata"} commits an offset for a
 * group without members; {"consumer": {configs}, "topics"} joins a group. Once all that joined are assigned partitions
 * and have committed where they are, it ends without a word to the groups, which go on with their members as long as a
 * session lasts. Argument: the broker.
 */
public final class Members {
    private static final long LIMIT_NANOS = Duration.ofSeconds(60).toNanos();

    private final String broker;
    private final Admin admin;
    private final List<KafkaConsumer<byte[], byte[]>> consumers = new ArrayList<>();
    private final Set<String> groups = new TreeSet<>();

    private Members(String broker) {
        this.broker = broker;
        this.admin = Admin.create(Map.of("bootstrap.servers", broker));
    }

    public static void main(String[] args) throws Exception {
        Members members = new Members(args[0]);
        for (JsonNode line : Json.standardInput()) {
            if (line.has("consumer")) {
                members.join(line);
            } else {
                members.commit(line);
            }
        }
        members.settle();
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private void commit(JsonNode line) throws Exception {
        var partition = new TopicPartition(line.get("topic").textValue(), line.get("partition").intValue());
        var offset = new OffsetAndMetadata(line.get("offset").longValue(), line.get("metadata").textValue());
        admin.alterConsumerGroupOffsets(line.get("group").textValue(), Map.of(partition, offset))
                .all()
                .get(60, TimeUnit.SECONDS);
    }

    private void join(JsonNode line) {
        Map<String, Object> configs = new HashMap<>(Json.strings(line.get("consumer")));
        configs.put("bootstrap.servers", broker);
        configs.put("auto.offset.reset", "earliest");
        configs.put("enable.auto.commit", "false");
        groups.add((String) configs.get("group.id"));
        var consumer = new KafkaConsumer<>(configs, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        List<String> topics = new ArrayList<>();
        line.get("topics").forEach(topic -> topics.add(topic.textValue()));
        consumer.subscribe(topics);
        consumers.add(consumer);
    }

    private void settle() throws Exception {
        long start = System.nanoTime();
        do {
            if (System.nanoTime() - start > LIMIT_NANOS) {
                throw new TimeoutException("the groups " + groups + " are not stable");
            }
            consumers.forEach(consumer -> consumer.poll(Duration.ofMillis(100)));
        } while (!areSettled());
        consumers.forEach(KafkaConsumer::commitSync);
    }

    private boolean areSettled() throws Exception {
        return consumers.stream().noneMatch(consumer -> consumer.assignment().isEmpty())
                && admin.describeConsumerGroups(groups).all().get(60, TimeUnit.SECONDS).values().stream()
                        .allMatch(group -> group.groupState() == GroupState.STABLE);
    }
}
