import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes to a broker of any release, and prints what it says. Arguments: the broker, its release, then a step: create,
 * expire, fill and a number, or answers. Clients of 3.9 talk to brokers from 0.10 on.
 */
public final class Workload {
    private static final long START = System.currentTimeMillis() - 200_000; // brokers forget old producers
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String broker;
    private final int release; // 2_08 for 2.8.2
    private final Admin admin;

    private Workload(String broker, String release) {
        this.broker = broker;
        String[] parts = release.split("\\.");
        this.release = Integer.parseInt(parts[0]) * 100 + Integer.parseInt(parts[1]);
        this.admin = Admin.create(Map.of("bootstrap.servers", broker));
    }

    public static void main(String[] args) throws Exception {
        var workload = new Workload(args[0], args[1]);
        try (workload.admin) {
            switch (args[2]) {
                case "create" -> workload.create();
                case "expire" -> workload.transaction("expired", "orders", 0, 5, true);
                case "fill" -> workload.fill(Integer.parseInt(args[3]));
                case "answers" -> workload.answers();
                default -> throw new IllegalArgumentException(args[2]);
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(0); // a producer that left its transaction open would abort it
    }

    private boolean hasTransactions() {
        return release >= 11;
    }

    private boolean hasOldFormats() {
        return release < 300;
    }

    private void create() throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        topics.add(topic("plain", 1, "segment.bytes", "16384"));
        topics.add(topic("compacted", 1, "cleanup.policy", "compact", "segment.bytes", "2048",
                "min.cleanable.dirty.ratio", "0.01", "delete.retention.ms", "1"));
        if (hasOldFormats()) {
            for (String format : List.of("0.9.0", "0.10.2")) {
                topics.add(topic("format-" + format, 1, "message.format.version", format, "segment.bytes", "16384"));
            }
            topics.add(topic("format-compacted", 1, "message.format.version", "0.10.2", "cleanup.policy", "compact",
                    "segment.bytes", "2048", "min.cleanable.dirty.ratio", "0.01"));
        }
        if (hasTransactions()) {
            topics.add(topic("orders", 2, "segment.bytes", "8192", "index.interval.bytes", "512"));
            topics.add(topic("trimmed", 1, "segment.bytes", "4096"));
        }
        get(admin.createTopics(topics).all());
    }

    private static NewTopic topic(String name, int partitions, String... configs) {
        Map<String, String> map = new HashMap<>();
        for (int i = 0; i < configs.length; i += 2) {
            map.put(configs[i], configs[i + 1]);
        }
        return new NewTopic(name, partitions, (short) 1).configs(map);
    }

    private void fill(int round) throws Exception {
        var codecs = new ArrayList<>(List.of("none", "gzip", "snappy", "lz4"));
        if (release >= 201) {
            codecs.add("zstd");
        }
        for (String codec : codecs) {
            send("plain", codec, 60, 1000, round);
            if (hasOldFormats() && !codec.equals("zstd")) { // no format before 2.1 knows it
                send("format-0.9.0", codec, 40, 1000, round);
                send("format-0.10.2", codec, 40, 1000, round);
                send("format-compacted", codec, 40, 7, round);
            }
        }
        send("compacted", "none", 60, 9, round);
        if (hasTransactions()) {
            transactions(round);
        }
        groups(round);
        send("compacted", "none", 20, 9, round); // so that what is before it is in closed segments
    }

    private void transactions(int round) throws Exception {
        try (var idempotent = producer("none", Map.of("enable.idempotence", "true"))) {
            for (int i = 0; i < 20; i++) {
                idempotent.send(record("orders", i % 2, i, 1000, new Random(i)));
            }
        }
        for (int i = 0; i < 8; i++) {
            boolean commits = i % 3 != 1;
            transaction("tx-" + i % 4, "orders", i, 12, commits);
            transaction("tx-" + i % 4, "compacted", i, 6, commits);
            transaction("tx-" + i % 4, "trimmed", i, 10, commits);
        }
        if (release >= 100) {
            long end = get(admin.listOffsets(Map.of(new TopicPartition("trimmed", 0),
                    org.apache.kafka.clients.admin.OffsetSpec.latest())).all()).values().iterator().next().offset();
            get(admin.deleteRecords(Map.of(new TopicPartition("trimmed", 0), RecordsToDelete.beforeOffset(end - 25)))
                    .all());
        }
        if (round > 1) { // left open
            var open = producer("lz4", Map.of("transactional.id", "open"));
            open.initTransactions();
            open.beginTransaction();
            for (int i = 0; i < 6; i++) {
                get(open.send(record("orders", 1, i, 1000, new Random(i))));
            }
            transaction("tx-behind", "orders", 1, 6, false);
            send("orders", "gzip", 30, 1000, round);
        }
    }

    private void transaction(String id, String topic, int seed, int count, boolean commits) throws Exception {
        try (var producer = producer(seed % 2 == 0 ? "none" : "gzip", Map.of("transactional.id", id))) {
            producer.initTransactions();
            producer.beginTransaction();
            int partitions = topic.equals("orders") ? 2 : 1;
            for (int i = 0; i < count; i++) {
                producer.send(record(topic, i % partitions, i, 9, new Random(seed * 100L + i)));
            }
            if (seed % 4 == 0) {
                producer.sendOffsetsToTransaction(
                        Map.of(new TopicPartition("plain", 0), new OffsetAndMetadata(seed + 1)),
                        new ConsumerGroupMetadata("in-transactions"));
            }
            producer.flush();
            if (commits) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
    }

    private void groups(int round) throws Exception {
        var partition = new TopicPartition("plain", 0);
        for (String group : List.of("simple", "emptied", "deleted", "round-" + round)) {
            try (var consumer = consumer(group, "read_committed")) {
                consumer.assign(List.of(partition));
                for (int i = 0; i < 12; i++) {
                    consumer.commitSync(Map.of(partition, new OffsetAndMetadata(i * round, "metadata " + i)));
                }
            }
        }
        for (String group : List.of("member", "emptied-member")) {
            try (var consumer = consumer(group, "read_committed")) {
                consumer.subscribe(Set.of("plain"));
                long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
                while (consumer.poll(Duration.ofMillis(200)).isEmpty() && System.nanoTime() < end) {
                    // it has yet to join
                }
                consumer.commitSync();
            }
        }
        if (release >= 204) {
            get(admin.deleteConsumerGroupOffsets("emptied", Set.of(partition)).all());
            get(admin.deleteConsumerGroupOffsets("emptied-member", Set.of(partition)).all());
        }
        if (release >= 101) {
            get(admin.deleteConsumerGroups(List.of("deleted")).all());
        }
    }

    private void send(String topic, String codec, int count, int keys, int round) throws Exception {
        var random = new Random(31L * round + codec.hashCode() + topic.hashCode());
        List<Future<?>> sent = new ArrayList<>();
        try (var producer = producer(codec, Map.of("enable.idempotence", "false"))) {
            for (int i = 0; i < count; i++) {
                sent.add(producer.send(record(topic, 0, i, keys, random)));
            }
            for (Future<?> one : sent) {
                one.get(30, TimeUnit.SECONDS);
            }
        }
    }

    /** Values of text, of bytes that are no UTF-8, empty and null ones; timestamps that go back now and then. */
    private static ProducerRecord<byte[], byte[]> record(String topic, int partition, int i, int keys, Random random) {
        byte[] key = ("key-" + i % keys).getBytes(StandardCharsets.UTF_8);
        byte[] value = ("value " + i + " ".repeat(random.nextInt(60)) + "äöü€😀").getBytes(StandardCharsets.UTF_8);
        if (i % 7 == 3) {
            value = new byte[40];
            random.nextBytes(value);
        } else if (i % 17 == 5) {
            value = i % 2 == 0 ? new byte[0] : null;
        }
        long timestamp = START + random.nextInt(100_000);
        return new ProducerRecord<>(topic, partition, timestamp, key, value);
    }

    private KafkaProducer<byte[], byte[]> producer(String codec, Map<String, String> configs) {
        Map<String, Object> all = new HashMap<>(Map.of("bootstrap.servers", broker, "compression.type", codec,
                "batch.size", "1500", "linger.ms", "50", "acks", "all"));
        all.putAll(configs);
        return new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private KafkaConsumer<byte[], byte[]> consumer(String group, String isolationLevel) {
        Map<String, Object> configs = new HashMap<>(Map.of("bootstrap.servers", broker, "auto.offset.reset", "earliest",
                "isolation.level", hasTransactions() ? isolationLevel : "read_uncommitted",
                "enable.auto.commit", "false"));
        if (group != null) {
            configs.put("group.id", group);
        }
        return new KafkaConsumer<>(configs, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Prints a line of JSON for each record, end, producer, transactional id and group. */
    private void answers() throws Exception {
        List<String> names = new ArrayList<>(get(admin.listTopics(
                new org.apache.kafka.clients.admin.ListTopicsOptions().listInternal(false)).names()));
        names.sort(null);
        List<TopicPartition> partitions = new ArrayList<>();
        for (var topic : get(admin.describeTopics(names).allTopicNames()).values()) {
            topic.partitions().forEach(p -> partitions.add(new TopicPartition(topic.name(), p.partition())));
        }
        consume("read_uncommitted", partitions);
        if (hasTransactions()) {
            consume("read_committed", partitions);
        }
        if (release >= 208) {
            producers(partitions);
        }
        if (release >= 300) {
            transactionalIds();
        }
        groupAnswers();
    }

    private void consume(String isolationLevel, List<TopicPartition> partitions) {
        try (var consumer = consumer(null, isolationLevel)) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> begins = consumer.beginningOffsets(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                if (System.nanoTime() > limit) {
                    throw new IllegalStateException("the consumer did not reach the ends " + ends);
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    Map<String, Object> line = line(isolationLevel);
                    line.put("topic", record.topic());
                    line.put("partition", record.partition());
                    line.put("offset", record.offset());
                    line.put("timestamp", record.timestamp());
                    line.put("timestamp_type", record.timestampType().toString());
                    line.put("key", hex(record.key()));
                    line.put("value", hex(record.value()));
                    print(line);
                }
            }
            for (TopicPartition partition : partitions) {
                Map<String, Object> line = line("end");
                line.put("isolation_level", isolationLevel);
                line.put("topic", partition.topic());
                line.put("partition", partition.partition());
                line.put("log_start_offset", begins.get(partition));
                line.put("end", ends.get(partition));
                print(line);
            }
        }
    }

    private void producers(List<TopicPartition> partitions) throws Exception {
        var described = get(admin.describeProducers(partitions).all());
        for (TopicPartition partition : partitions) {
            for (var state : described.get(partition).activeProducers()) {
                Map<String, Object> line = line("producer");
                line.put("topic", partition.topic());
                line.put("partition", partition.partition());
                line.put("producer_id", state.producerId());
                line.put("producer_epoch", state.producerEpoch());
                line.put("last_sequence", state.lastSequence());
                line.put("last_timestamp_ms", state.lastTimestamp());
                line.put("current_transaction_first_offset", orNull(state.currentTransactionStartOffset().orElse(-1)));
                line.put("coordinator_epoch", state.coordinatorEpoch().orElse(-1));
                print(line);
            }
        }
    }

    private void transactionalIds() throws Exception {
        for (var listing : get(admin.listTransactions().all())) {
            var one = get(admin.describeTransactions(List.of(listing.transactionalId()))
                    .description(listing.transactionalId()));
            Map<String, Object> line = line("transactional_id");
            line.put("transactional_id", listing.transactionalId());
            line.put("producer_id", one.producerId());
            line.put("producer_epoch", one.producerEpoch());
            line.put("state", one.state().toString());
            line.put("timeout_ms", one.transactionTimeoutMs());
            line.put("partitions", one.topicPartitions().stream().map(TopicPartition::toString).sorted().toList());
            print(line);
        }
    }

    private void groupAnswers() throws Exception {
        for (var listing : get(admin.listConsumerGroups().all())) {
            Map<String, Object> line = line("group");
            line.put("group", listing.groupId());
            String state = get(admin.describeConsumerGroups(List.of(listing.groupId())).all())
                    .get(listing.groupId()).state().toString();
            line.put("state", state);
            Map<String, Object> offsets = new TreeMap<>();
            try (var consumer = consumer(listing.groupId(), "read_uncommitted")) {
                Collection<TopicPartition> all = List.of(new TopicPartition("plain", 0));
                consumer.committed(Set.copyOf(all)).forEach((partition, offset) -> {
                    if (offset != null) {
                        offsets.put(partition.toString(), List.of(offset.offset(), offset.metadata()));
                    }
                });
            }
            line.put("offsets", offsets);
            print(line);
        }
    }

    private static Map<String, Object> line(String kind) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("answer", kind);
        return line;
    }

    private static Long orNull(long value) {
        return value < 0 ? null : value;
    }

    private static String hex(byte[] data) {
        return data == null ? null : HexFormat.of().formatHex(data);
    }

    private static void print(Map<String, Object> line) throws RuntimeException {
        try {
            System.out.println(JSON.writeValueAsString(line));
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    private static <T> T get(Future<T> future) throws Exception {
        return future.get(60, TimeUnit.SECONDS);
    }
}
