import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Carries out the lines on standard input, in order. A line is a record to send, or one of
 * {"producer": {configs}}, which closes the producer there was and opens another, and
 * {"transaction": "begin" | "commit" | "abort"}. Argument: the broker.
 */
public final class Produce {
    private final String broker;
    private final List<Future<RecordMetadata>> sent = new ArrayList<>();
    private KafkaProducer<byte[], byte[]> producer;

    private Produce(String broker) {
        this.broker = broker;
    }

    public static void main(String[] args) throws Exception {
        Produce produce = new Produce(args[0]);
        for (JsonNode line : Json.standardInput()) {
            produce.carryOut(line);
        }
        produce.close();
    }

    private void carryOut(JsonNode line) throws Exception {
        if (line.has("producer")) {
            close();
            open(Json.strings(line.get("producer")));
        } else if (line.has("transaction")) {
            transaction(line.get("transaction").textValue());
        } else {
            sent.add(producer.send(Json.toSend(line)));
        }
    }

    private void open(Map<String, String> configs) {
        configs.put("bootstrap.servers", broker);
        producer = new KafkaProducer<>(Map.copyOf(configs), new ByteArraySerializer(), new ByteArraySerializer());
        if (configs.containsKey("transactional.id")) {
            producer.initTransactions();
        }
    }

    private void transaction(String step) throws Exception {
        switch (step) {
            case "begin" -> producer.beginTransaction();
            case "commit" -> producer.commitTransaction();
            case "abort" -> {
                settle(); // records still unsent would be dropped, and the aborted ones are to be in the log
                producer.abortTransaction();
            }
            default -> throw new IllegalArgumentException(step);
        }
    }

    /** Waits until the broker has taken every record: a refused one fails the run. */
    private void settle() throws Exception {
        producer.flush();
        for (Future<RecordMetadata> one : sent) {
            one.get(60, TimeUnit.SECONDS);
        }
        sent.clear();
    }

    private void close() throws Exception {
        if (producer != null) {
            settle();
            producer.close();
        }
    }
}
