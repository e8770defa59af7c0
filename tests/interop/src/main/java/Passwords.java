import org.apache.kafka.common.config.ConfigDef;

/** Prints the names of a broker's configs that hold passwords or keys, in order. */
public final class Passwords {
    public static void main(String[] args) throws Exception {
        // The class is on the class path when this runs, and not when it is compiled.
        Object definitions = Class.forName("kafka.server.KafkaConfig").getMethod("configDef").invoke(null);
        ((ConfigDef) definitions)
                .configKeys().values().stream()
                        .filter(key -> key.type.isSensitive())
                        .map(key -> key.name)
                        .sorted()
                        .forEach(System.out::println);
    }
}
