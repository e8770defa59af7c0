import java.util.Map;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints the errors of Kafka's protocol: {"name", "code", "is_retriable"} a line. */
public final class KafkaErrors {
    public static void main(String[] args) throws Exception {
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof RetriableException;
            System.out.write(Json.line(Map.of(
                    "name", error.name(), "code", (int) error.code(), "is_retriable", retriable)));
        }
        System.out.flush();
    }
}
