import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Takes orders and makes transfers of them, until standard input ends; each byte of it lowers the transaction version to
 * 1. A worker of the group "transfers" reads orders,
 * and for each one moves an amount between two of the accounts: two records whose key is PARTITION:OFFSET of the order.
 * In the same transaction it writes how many transactions it has begun, with its name as key, to "left" and "right", and
 * commits the offsets of the orders. Some transactions are aborted, some workers leave the group and come back, and some
 * vanish with a transaction that is open. "readers" is a group of the new protocol that commits without transactions.
 * Arguments: the brokers, a seed, the number of workers. Prints a line with the number of committed transactions.
 */
public final class Transfers {
    private static final int ACCOUNTS = 3;
    private static final Duration WAIT = Duration.ofMillis(100);

    private final String brokers;
    private final AtomicLong committed = new AtomicLong();
    private volatile boolean isEnding;

    private Transfers(String brokers) {
        this.brokers = brokers;
    }

    public static void main(String[] args) throws Exception {
        var transfers = new Transfers(args[0]);
        long seed = Long.parseLong(args[1]);
        List<Thread> threads = new ArrayList<>();
        threads.add(new Thread(() -> transfers.repeat(() -> transfers.order(new Random(seed)))));
        threads.add(new Thread(() -> transfers.repeat(transfers::read)));
        for (int worker = 0; worker < Integer.parseInt(args[2]); worker++) {
            var random = new Random(seed * 100 + worker + 1);
            String name = "transfer-" + worker;
            var begun = new AtomicLong();
            threads.add(new Thread(() -> transfers.repeat(() -> transfers.transfer(name, begun, random))));
        }
        threads.forEach(thread -> thread.setDaemon(true)); // where this one fails, all end
        threads.forEach(Thread::start);
        while (System.in.read() >= 0) {
            transfers.lowerTransactionVersion();
        }
        transfers.isEnding = true;
        for (Thread thread : threads) {
            thread.join(TimeUnit.SECONDS.toMillis(10));
        }
        System.out.write(Json.line(Map.of("committed", transfers.committed.get())));
        System.out.flush();
        Runtime.getRuntime().halt(0); // clients that wait for a broker would wait on
    }

    private void lowerTransactionVersion() throws Exception {
        var lower = new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", brokers))) {
            admin.updateFeatures(Map.of("transaction.version", lower), new UpdateFeaturesOptions())
                    .all()
                    .get(60, TimeUnit.SECONDS);
        }
    }

    private interface Work {
        void run() throws Exception;
    }

    /** Begins anew where a broker that ends makes a client useless. */
    private void repeat(Work work) {
        while (!isEnding) {
            try {
                work.run();
            } catch (Exception failed) {
                sleep(200);
            }
        }
    }

    private void order(Random random) throws Exception {
        try (var producer = producer(Map.of("enable.idempotence", "true", "linger.ms", "0"))) {
            while (!isEnding) {
                producer.send(new ProducerRecord<>("orders", random.nextInt(ACCOUNTS), null, "x".repeat(random.nextInt(400))));
                sleep(random.nextInt(20));
            }
        }
    }

    private void read() throws Exception {
        var configs = consumerConfigs("readers");
        configs.put("group.protocol", "consumer");
        try (var consumer = new KafkaConsumer<>(configs, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("accounts"));
            while (!isEnding) {
                if (!consumer.poll(WAIT).isEmpty()) {
                    consumer.commitSync(Duration.ofSeconds(5));
                }
            }
        }
    }

    /** Works until it leaves the group. */
    private void transfer(String name, AtomicLong begun, Random random) throws Exception {
        Map<String, String> own = Map.of(
                "transactional.id", name, "transaction.timeout.ms", "6000", "max.block.ms", "8000", "linger.ms", "0");
        var producer = producer(own);
        var consumer =
                new KafkaConsumer<>(consumerConfigs("transfers"), new StringDeserializer(), new StringDeserializer());
        try {
            producer.initTransactions();
            consumer.subscribe(List.of("orders"));
            while (!isEnding) {
                ConsumerRecords<String, String> orders = consumer.poll(WAIT);
                if (orders.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                long number = begun.incrementAndGet();
                for (ConsumerRecord<String, String> order : orders) {
                    move(producer, order.partition() + ":" + order.offset(), random);
                }
                producer.send(new ProducerRecord<>("left", 0, name, Long.toString(number)));
                producer.send(new ProducerRecord<>("right", 0, name, Long.toString(number)));
                producer.sendOffsetsToTransaction(next(orders), consumer.groupMetadata());
                sleep(random.nextInt(40));
                int end = random.nextInt(100);
                if (end < 3) {
                    return; // with the transaction open
                }
                if (end < 20) {
                    producer.flush(); // else what is unsent would be dropped
                    producer.abortTransaction();
                    return;
                }
                producer.commitTransaction();
                committed.incrementAndGet();
            }
        } finally {
            producer.close(Duration.ZERO); // given time it would abort
            consumer.close(Duration.ofMillis(random.nextInt(2) * 500)); // with and without a word to the group
            sleep(random.nextInt(300));
        }
    }

    private static void move(KafkaProducer<String, String> producer, String order, Random random) {
        int amount = 1 + random.nextInt(99);
        int to = random.nextInt(ACCOUNTS);
        int of = (to + 1 + random.nextInt(ACCOUNTS - 1)) % ACCOUNTS;
        producer.send(new ProducerRecord<>("accounts", to, order, Integer.toString(amount)));
        producer.send(new ProducerRecord<>("accounts", of, order, Integer.toString(-amount)));
    }

    private static Map<TopicPartition, OffsetAndMetadata> next(ConsumerRecords<String, String> orders) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<String, String> order : orders) {
            offsets.put(
                    new TopicPartition(order.topic(), order.partition()), new OffsetAndMetadata(order.offset() + 1));
        }
        return offsets;
    }

    private KafkaProducer<String, String> producer(Map<String, String> own) throws KafkaException {
        Map<String, Object> configs = new HashMap<>(own);
        configs.put("bootstrap.servers", brokers);
        configs.put("request.timeout.ms", "3000");
        configs.put("delivery.timeout.ms", "8000");
        return new KafkaProducer<>(configs, new StringSerializer(), new StringSerializer());
    }

    private Map<String, Object> consumerConfigs(String group) {
        Map<String, Object> configs = new HashMap<>();
        configs.put("bootstrap.servers", brokers);
        configs.put("group.id", group);
        configs.put("auto.offset.reset", "earliest");
        configs.put("enable.auto.commit", "false");
        configs.put("isolation.level", "read_committed");
        configs.put("max.poll.records", "20");
        configs.put("session.timeout.ms", "6000");
        configs.put("default.api.timeout.ms", "8000");
        if (group.equals("readers")) {
            configs.remove("session.timeout.ms"); // which brokers say in the new protocol
        }
        return configs;
    }

    private static void sleep(int milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }
}
