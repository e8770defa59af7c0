import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Carries out the lines on standard input, in order. A line is a record to send, or one of
 * {"producer": {configs}}, which closes the producer there was and opens another, and
 * {"transaction": "begin" | "commit" | "abort" | "leave"}, the last of which leaves it open and the producer gone, and
 * {"transaction": "settle"}, which waits for the records of all producers, and
 * {"group", "topic", "partition", "offset", "metadata"}, which commits an offset of a group in the transaction.
 * Several producers at a time have names: "by" in each of their lines. Argument: the broker.
 */
public final class Produce {
    private final String broker;
    private final List<Future<RecordMetadata>> sent = new ArrayList<>();
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();

    private Produce(String broker) {
        this.broker = broker;
    }

    public static void main(String[] args) throws Exception {
        Produce produce = new Produce(args[0]);
        for (JsonNode line : Json.standardInput()) {
            produce.carryOut(line);
        }
        for (String name : List.copyOf(produce.producers.keySet())) {
            produce.close(name);
        }
    }

    private void carryOut(JsonNode line) throws Exception {
        String name = line.path("by").asText("");
        if (line.has("producer")) {
            close(name);
            open(name, Json.strings(line.get("producer")));
        } else if (line.has("transaction")) {
            transaction(name, line.get("transaction").textValue());
        } else if (line.has("group")) {
            var partition = new TopicPartition(line.get("topic").textValue(), line.get("partition").intValue());
            var offset = new OffsetAndMetadata(line.get("offset").longValue(), line.get("metadata").textValue());
            var group = new ConsumerGroupMetadata(line.get("group").textValue());
            producers.get(name).sendOffsetsToTransaction(Map.of(partition, offset), group);
        } else {
            sent.add(producers.get(name).send(Json.toSend(line)));
        }
    }

    private void open(String name, Map<String, String> configs) {
        configs.put("bootstrap.servers", broker);
        var producer = new KafkaProducer<>(Map.copyOf(configs), new ByteArraySerializer(), new ByteArraySerializer());
        producers.put(name, producer);
        if (configs.containsKey("transactional.id")) {
            producer.initTransactions();
        }
    }

    private void transaction(String name, String step) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producers.get(name);
        switch (step) {
            case "begin" -> producer.beginTransaction();
            case "commit" -> producer.commitTransaction();
            case "abort" -> {
                settle(); // records still unsent would be dropped, and the aborted ones are to be in the log
                producer.abortTransaction();
            }
            case "settle" -> settle();
            case "leave" -> {
                settle();
                producers.remove(name).close(Duration.ZERO); // given time it would abort
            }
            default -> throw new IllegalArgumentException(step);
        }
    }

    /** Waits until the broker has taken every record: a refused one fails the run. */
    private void settle() throws Exception {
        producers.values().forEach(KafkaProducer::flush);
        for (Future<RecordMetadata> one : sent) {
            one.get(60, TimeUnit.SECONDS);
        }
        sent.clear();
    }

    private void close(String name) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producers.get(name);
        if (producer != null) {
            settle();
            producers.remove(name);
            producer.close();
        }
    }
}
