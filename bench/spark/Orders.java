import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Creates a topic of two partitions and sends it orders in turn: a key of 8 bytes, and a line of JSON of 100 as value.
 * Arguments: the broker, the topic, how many, and the milliseconds of a transaction, 0 for none.
 */
public final class Orders {
    private static final int PARTITIONS = 2;
    private static final long FIRST_TIMESTAMP = 1_700_000_000_000L;
    private static final String LINE = "{\"order\":\"%09d\",\"customer\":\"%05d\",\"status\":\"%s\",\"amount\":%05d,"
            + "\"currency\":\"EUR\",\"rev\":1}";
    private static final List<String> STATUSES = List.of("accepted", "rejected", "shipping", "returned");

    public static void main(String[] args) throws Exception {
        String broker = args[0];
        String topic = args[1];
        long count = Long.parseLong(args[2]);
        long transactionNanos = Long.parseLong(args[3]) * 1_000_000;
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker))) {
            admin.createTopics(List.of(new NewTopic(topic, PARTITIONS, (short) 1))).all().get();
        }
        Map<String, Object> plain = Map.of("bootstrap.servers", broker, "batch.size", 65_536, "linger.ms", 100);
        Map<String, Object> transactional = Map.of(
                "bootstrap.servers", broker, "batch.size", 65_536, "linger.ms", 100, "transactional.id", topic);
        var bytes = new ByteArraySerializer();
        try (var producer = new KafkaProducer<>(transactionNanos > 0 ? transactional : plain, bytes, bytes)) {
            send(producer, topic, count, transactionNanos);
        }
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, String topic, long count, long transactionNanos)
            throws Exception {
        var random = new SplittableRandom(42);
        var failure = new AtomicReference<Exception>();
        long began = 0;
        if (transactionNanos > 0) {
            producer.initTransactions();
        }
        for (long number = 0; number < count; number++) {
            if (transactionNanos > 0 && (number == 0 || System.nanoTime() - began > transactionNanos)) {
                if (number > 0) {
                    producer.commitTransaction();
                }
                producer.beginTransaction();
                began = System.nanoTime();
            }
            byte[] key = ByteBuffer.allocate(Long.BYTES).putLong(number).array();
            String line = LINE.formatted(
                    number, random.nextInt(100_000), STATUSES.get(random.nextInt(4)), random.nextInt(10_000, 100_000));
            byte[] value = line.getBytes(StandardCharsets.US_ASCII);
            int partition = (int) (number % PARTITIONS);
            producer.send(new ProducerRecord<>(topic, partition, FIRST_TIMESTAMP + number / 100, key, value), (to, e) -> {
                if (e != null) {
                    failure.compareAndSet(null, e);
                }
            });
        }
        if (transactionNanos > 0) {
            producer.commitTransaction();
        }
        producer.flush();
        if (failure.get() != null) {
            throw failure.get();
        }
    }
}
