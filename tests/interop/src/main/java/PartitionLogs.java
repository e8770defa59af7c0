import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.Properties;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.common.message.DescribeProducersResponseData.ProducerState;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Partitions' folders in the classes of a broker. Standard input: a line {"steps": [..]} at a time, each step an object
 * with "do", "folder" and what it needs; the answer is a line with what each step returned, or {"error"}.
 */
public final class PartitionLogs {
    private static final int DAY = 86_400_000;
    private static final HexFormat HEX = HexFormat.of();

    private final Map<String, UnifiedLog> logs = new HashMap<>();
    private final Tasks tasks = new Tasks();
    private final BrokerTopicStats stats = new BrokerTopicStats();

    public static void main(String[] args) throws Exception {
        PartitionLogs logs = new PartitionLogs();
        for (Iterator<JsonNode> lines = Json.lines(System.in); lines.hasNext(); ) {
            List<Object> answers = new ArrayList<>();
            for (JsonNode step : lines.next().get("steps")) {
                try {
                    answers.add(logs.done(step));
                } catch (Exception | Error error) { // an answer, too: what a broker refuses
                    answers.add(Map.of("error", error.toString()));
                }
            }
            System.out.write(Json.line(answers));
            System.out.flush();
        }
    }

    private Object done(JsonNode step) throws Exception {
        String folder = step.get("folder").textValue();
        UnifiedLog log = logs.get(folder);
        switch (step.get("do").textValue()) {
            case "open" -> logs.put(folder, opened(new File(folder), step));
            case "append" -> {
                ByteBuffer bytes = ByteBuffer.wrap(HEX.parseHex(step.get("batches").textValue()));
                log.appendAsFollower(MemoryRecords.readableRecords(bytes), Integer.MAX_VALUE);
                log.updateHighWatermark(log.logEndOffset());
            }
            case "roll" -> log.roll();
            case "flush" -> log.flush(false);
            case "truncate" -> log.truncateTo(step.get("to").longValue());
            case "start over" -> log.truncateFullyAndStartAt(step.get("to").longValue(), Optional.empty());
            case "delete records" -> log.maybeIncrementLogStartOffset(
                    step.get("to").longValue(), LogStartOffsetIncrementReason.ClientRecordDeletion);
            case "delete segments" -> log.deleteOldSegments();
            case "delete files" -> tasks.runLater();
            case "clean" -> {
                return cleaned(log, step);
            }
            case "clean for" -> { // again and again, while somebody reads
                long until = System.currentTimeMillis() + step.get("ms").longValue();
                int rounds = 0;
                for (; System.currentTimeMillis() < until; rounds++) {
                    cleaned(log, step);
                    tasks.runLater();
                    Thread.sleep(step.get("pause").longValue());
                }
                return rounds;
            }
            case "work for" -> { // what a leader does, while somebody reads: append, roll, move the log start, delete
                return worked(log, step);
            }
            case "state" -> {
                return state(log, step);
            }
            case "close" -> {
                logs.remove(folder).close();
                tasks.runLater();
            }
            case "leave" -> logs.remove(folder).closeHandlers(); // nothing is flushed or written any more
            default -> throw new IllegalArgumentException(step.toString());
        }
        return null;
    }

    private UnifiedLog opened(File folder, JsonNode step) throws Exception {
        Properties topic = new Properties();
        step.get("config").properties().forEach(one -> topic.put(one.getKey(), one.getValue().asText()));
        UnifiedLog log = UnifiedLog.create(
                folder,
                new LogConfig(topic),
                step.get("start").longValue(),
                step.get("recovery_point").longValue(),
                tasks,
                stats,
                Time.SYSTEM,
                DAY,
                new ProducerStateManagerConfig(DAY, false),
                DAY,
                new LogDirFailureChannel(1),
                step.get("is_clean").booleanValue(),
                Optional.empty(),
                new ConcurrentHashMap<String, Integer>(),
                false,
                LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        log.updateHighWatermark(log.logEndOffset());
        return log;
    }

    private long cleaned(UnifiedLog log, JsonNode step) throws Exception {
        Throttler throttler = new Throttler(Double.MAX_VALUE, 300, "cleaner", "entries", Time.SYSTEM);
        SkimpyOffsetMap offsets = new SkimpyOffsetMap(step.get("buffer").intValue());
        double load = step.get("load").doubleValue();
        Cleaner cleaner = new Cleaner(0, offsets, 1 << 16, 1 << 20, load, throttler, Time.SYSTEM, partition -> {});
        long end = step.hasNonNull("end")
                ? step.get("end").longValue()
                : Math.min(log.lastStableOffset(), log.activeSegment().baseOffset());
        LogToClean what = new LogToClean(log, step.get("dirty").longValue(), end, false);
        return cleaner.doClean(what, step.get("now").longValue()).getKey();
    }

    private long worked(UnifiedLog log, JsonNode step) throws Exception {
        long rolls = 0;
        int number = 0;
        for (JsonNode batches : step.get("batches")) {
            ByteBuffer bytes = ByteBuffer.wrap(HEX.parseHex(batches.textValue()));
            log.appendAsFollower(MemoryRecords.readableRecords(bytes), Integer.MAX_VALUE);
            log.updateHighWatermark(log.logEndOffset());
            number++;
            if (number % step.get("roll_every").intValue() == 0) {
                log.roll();
                rolls++;
            }
            if (number % step.get("delete_every").intValue() == 0) {
                log.deleteOldSegments();
                tasks.runLater();
            }
            Thread.sleep(step.get("pause").longValue());
        }
        return rolls;
    }

    private static Map<String, Object> state(UnifiedLog log, JsonNode step) throws Exception {
        Map<String, Object> found = new LinkedHashMap<>();
        long start = log.logStartOffset();
        long end = log.logEndOffset();
        found.put("start", start);
        found.put("end", end);
        found.put("stable", log.lastStableOffset());
        found.put("recovery_point", log.recoveryPoint());
        found.put("bases", log.logSegments().stream().map(one -> one.baseOffset()).toList());
        found.put("epochs", log.leaderEpochCache().epochEntries().stream()
                .map(one -> List.of(one.epoch(), one.startOffset()))
                .toList());
        found.put("records", records(log, FetchIsolation.HIGH_WATERMARK));
        found.put("committed", records(log, FetchIsolation.TXN_COMMITTED));
        found.put("producers", log.activeProducers().stream()
                .map(one -> producer(one, log))
                .toList());
        found.put("aborted", log.collectAbortedTransactions(start, end).stream()
                .map(one -> List.of(one.producerId(), one.firstOffset(), one.lastOffset(), one.lastStableOffset()))
                .toList());
        Map<String, Object> times = new LinkedHashMap<>();
        for (JsonNode time : step.get("times")) {
            times.put(
                    time.asText(),
                    log.fetchOffsetByTimestamp(time.longValue(), Optional.empty())
                            .timestampAndOffsetOpt()
                            .map(one -> List.of(one.offset, one.timestamp))
                            .orElse(null));
        }
        found.put("times", times);
        return found;
    }

    private static List<Object> producer(ProducerState state, UnifiedLog log) {
        return List.of(
                state.producerId(),
                state.producerEpoch(),
                state.lastSequence(),
                log.producerStateManager().activeProducers().get(state.producerId()).lastDataOffset(),
                state.lastTimestamp(),
                state.coordinatorEpoch(),
                state.currentTxnStartOffset());
    }

    /** What a consumer gets: it drops aborted transactions by the list that comes with each response. */
    private static List<List<Object>> records(UnifiedLog log, FetchIsolation isolation) throws Exception {
        List<List<Object>> rows = new ArrayList<>();
        long at = log.logStartOffset();
        while (true) {
            FetchDataInfo fetched = log.read(at, 1 << 12, isolation, true);
            PriorityQueue<AbortedTransaction> waiting =
                    new PriorityQueue<>(Comparator.comparingLong(AbortedTransaction::firstOffset));
            fetched.abortedTransactions.ifPresent(waiting::addAll);
            Set<Long> aborted = new HashSet<>();
            long next = at;
            for (RecordBatch batch : fetched.records.batches()) {
                while (!waiting.isEmpty() && waiting.peek().firstOffset() <= batch.lastOffset()) {
                    aborted.add(waiting.poll().producerId());
                }
                next = batch.nextOffset();
                if (batch.isControlBatch()) {
                    Iterator<Record> records = batch.iterator();
                    if (records.hasNext() && ControlRecordType.parse(records.next().key()) == ControlRecordType.ABORT) {
                        aborted.remove(batch.producerId());
                    }
                    continue;
                }
                if (isolation == FetchIsolation.TXN_COMMITTED
                        && batch.isTransactional()
                        && aborted.contains(batch.producerId())) {
                    continue;
                }
                for (Record record : batch) {
                    if (record.offset() >= at) {
                        List<Object> row = new ArrayList<>(List.of(record.offset(), record.timestamp()));
                        row.add(hex(record.key()));
                        row.add(hex(record.value()));
                        rows.add(row);
                    }
                }
            }
            if (next <= at) {
                return rows;
            }
            at = next;
        }
    }

    private static String hex(ByteBuffer bytes) {
        if (bytes == null) {
            return null;
        }
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        return HEX.formatHex(copy);
    }

    /** Runs what is due at once where it is scheduled, and the rest, which deletes files, when it is told to. */
    private static final class Tasks implements Scheduler {
        private final Queue<Runnable> later = new ArrayDeque<>();

        void runLater() {
            for (Runnable task = later.poll(); task != null; task = later.poll()) {
                task.run();
            }
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) {
            if (period >= 0) {
                return new Nothing(); // checks of the clock
            }
            if (delay > 0) {
                later.add(task);
            } else {
                task.run();
            }
            return new Nothing();
        }

        @Override
        public void startup() {}

        @Override
        public void shutdown() {}

        @Override
        public void resizeThreadPool(int size) {}
    }

    /** Of a task that nobody waits for. */
    private static final class Nothing extends java.util.concurrent.CompletableFuture<Object>
            implements ScheduledFuture<Object> {
        @Override
        public long getDelay(java.util.concurrent.TimeUnit unit) {
            return 0;
        }

        @Override
        public int compareTo(java.util.concurrent.Delayed other) {
            return 0;
        }
    }
}
