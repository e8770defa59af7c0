import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.KafkaFuture;

/**
 * Creates the topics on standard input: {"name", "partitions", "configs"} a line. Prints a line {"name", "error"} for
 * each of them: the name of Kafka's exception, or null. Argument: the broker.
 */
public final class Topics {
    public static void main(String[] args) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (JsonNode line : Json.standardInput()) {
            topics.add(new NewTopic(line.get("name").textValue(), line.get("partitions").intValue(), (short) 1)
                    .configs(Json.strings(line.get("configs"))));
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            for (var created : admin.createTopics(topics).values().entrySet()) {
                Map<String, String> line = new HashMap<>(Map.of("name", created.getKey()));
                line.put("error", error(created.getValue()));
                System.out.write(Json.line(line));
            }
        }
        System.out.flush();
    }

    private static String error(KafkaFuture<Void> future) throws Exception {
        try {
            future.get(60, TimeUnit.SECONDS);
            return null;
        } catch (ExecutionException failed) {
            return failed.getCause().getClass().getSimpleName();
        }
    }
}
