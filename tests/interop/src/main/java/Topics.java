import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;

/** Creates the topics on standard input: {"name", "partitions", "configs"} a line. Argument: the broker. */
public final class Topics {
    public static void main(String[] args) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (JsonNode line : Json.standardInput()) {
            topics.add(new NewTopic(line.get("name").textValue(), line.get("partitions").intValue(), (short) 1)
                    .configs(Json.strings(line.get("configs"))));
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            admin.createTopics(topics).all().get(60, TimeUnit.SECONDS);
        }
    }
}
