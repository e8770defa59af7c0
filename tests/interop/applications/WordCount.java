import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Counts the words of "lines" into "counts", and joins the first one of each line with "names" into "joined", exactly
 * once, until standard input ends. Arguments: the broker, and the folder of the stores.
 */
public final class WordCount {
    public static void main(String[] args) throws Exception {
        var text = Serdes.String();
        var builder = new StreamsBuilder();
        var lines = builder.<String, String>stream("lines");
        var names = builder.<String, String>table("names");
        lines.flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word, Grouped.with(text, text))
                .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counted")
                        .withKeySerde(text)
                        .withValueSerde(Serdes.Long()))
                .toStream()
                .mapValues(String::valueOf)
                .to("counts", Produced.with(text, text));
        lines.selectKey((key, line) -> line.split(" ")[0])
                .repartition(Repartitioned.with(text, text).withName("by-first").withNumberOfPartitions(2))
                .leftJoin(names, (line, name) -> name + ": " + line, Joined.with(text, text, text))
                .to("joined", Produced.with(text, text));
        var streams = new KafkaStreams(builder.build(), configs(args[0], args[1]));
        streams.start();
        while (System.in.read() >= 0) {
            // Nothing is said to it: all that matters is the end.
        }
        streams.close();
    }

    private static Properties configs(String broker, String folder) {
        var configs = new Properties();
        configs.put(StreamsConfig.APPLICATION_ID_CONFIG, "words");
        configs.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, broker);
        configs.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        configs.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        configs.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        configs.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        configs.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        configs.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        configs.put(StreamsConfig.REPARTITION_PURGE_INTERVAL_MS_CONFIG, 500);
        configs.put("session.timeout.ms", 6000);
        return configs;
    }
}
