import java.io.BufferedOutputStream;
import java.io.OutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Prints every record of the topics that the isolation level lets through, from the first offset to what was the end
 * at the start: of the log, or of what is stable. Then prints the position it has come to in each partition.
 * Arguments: the broker, the isolation level, then the topics.
 */
public final class Consume {
    private static final long LIMIT_NANOS = Duration.ofSeconds(60).toNanos();

    public static void main(String[] args) throws Exception {
        Map<String, Object> configs =
                Map.of("bootstrap.servers", args[0], "isolation.level", args[1], "auto.offset.reset", "none");
        try (var consumer =
                        new KafkaConsumer<>(configs, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                var out = new BufferedOutputStream(System.out)) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (String topic : List.of(args).subList(2, args.length)) {
                consumer.partitionsFor(topic).forEach(p -> partitions.add(new TopicPartition(topic, p.partition())));
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            print(consumer, consumer.endOffsets(partitions), out);
        }
    }

    private static void print(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> ends, OutputStream out)
            throws Exception {
        long start = System.nanoTime();
        while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
            if (System.nanoTime() - start > LIMIT_NANOS) {
                throw new TimeoutException("the consumer did not reach the ends " + ends);
            }
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                out.write(Json.line(record));
            }
        }
        for (TopicPartition partition : ends.keySet()) {
            out.write(Json.line(Map.of(
                    "topic", partition.topic(),
                    "partition", partition.partition(),
                    "position", consumer.position(partition))));
        }
    }
}
