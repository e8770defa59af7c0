import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Kafka's own consumer beside a broker on this host. Usage: Consumed TOPIC PROPERTIES WARM-UPS. The properties are those
 * of a broker, which is started; or bootstrap.servers of one that runs. What was read is answered with the number of
 * its records.
 */
public final class Consumed {
    private Consumed() {
    }

    public static void main(String[] arguments) throws IOException {
        Properties server = new Properties();
        try (InputStream file = new FileInputStream(Path.of(arguments[1]).toFile())) {
            server.load(file);
        }
        Properties client = new Properties();
        client.put("bootstrap.servers", server.getProperty("bootstrap.servers", ""));
        if (server.containsKey("listeners")) {
            Thread node = new Thread(() -> kafka.Kafka.main(new String[] {arguments[1]}), "broker");
            node.setDaemon(true);
            node.start();
            String listener = server.getProperty("listeners").split(",")[0];
            client.put("bootstrap.servers", listener.substring(listener.indexOf("//") + 2));
        }
        client.put("auto.offset.reset", "earliest");
        client.put("enable.auto.commit", "false");
        client.put("max.poll.records", "20000");
        TopicPartition partition = new TopicPartition(arguments[0], 0);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(client, bytes, bytes)) {
            consumer.assign(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            Turns.take(() -> new long[] {records(consumer, partition, end)}, Integer.parseInt(arguments[2]));
        }
        System.exit(0); // which stops the broker, too
    }

    private static long records(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, long end) {
        consumer.seekToBeginning(List.of(partition));
        long found = 0;
        while (consumer.position(partition) < end) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(5))) {
                found += record.value() == null ? 0 : 1;
            }
        }
        return found;
    }
}
