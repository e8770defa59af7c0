import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Cleans partitions' folders as a broker does: {"folder", "dirty", "end", "now", "retention"} a line in, the offset up to
 * which each was cleaned out. */
public final class Clean {
    private static final int DAY = 86_400_000;

    public static void main(String[] args) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        for (JsonNode line : Json.standardInput()) {
            System.out.write(Json.line(Map.of("cleaned", clean(line, scheduler))));
        }
        System.out.flush();
        System.exit(0); // the scheduler's threads would wait for the deletion of files
    }

    private static long clean(JsonNode line, KafkaScheduler scheduler) throws Exception {
        Properties topic = new Properties();
        topic.put("cleanup.policy", "compact");
        topic.put("delete.retention.ms", line.get("retention").asText());
        topic.put("segment.bytes", "1048576");
        topic.put("file.delete.delay.ms", "600000");
        UnifiedLog log = UnifiedLog.create(
                new File(line.get("folder").textValue()),
                new LogConfig(topic),
                0,
                0,
                scheduler,
                new BrokerTopicStats(),
                Time.SYSTEM,
                DAY,
                new ProducerStateManagerConfig(DAY, false),
                DAY,
                new LogDirFailureChannel(1),
                false,
                Optional.empty(),
                new ConcurrentHashMap<String, Integer>(),
                false,
                LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        try {
            log.updateHighWatermark(log.logEndOffset());
            Throttler throttler = new Throttler(Double.MAX_VALUE, 300, "cleaner", "entries", Time.SYSTEM);
            SkimpyOffsetMap offsets = new SkimpyOffsetMap(1 << 20);
            Cleaner cleaner = new Cleaner(0, offsets, 1 << 16, 1 << 20, 0.9, throttler, Time.SYSTEM, partition -> {});
            LogToClean what = new LogToClean(log, line.get("dirty").longValue(), line.get("end").longValue(), false);
            return cleaner.doClean(what, line.get("now").longValue()).getKey();
        } finally {
            log.close();
        }
    }
}
