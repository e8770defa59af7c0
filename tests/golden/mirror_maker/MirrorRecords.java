package org.apache.kafka.connect.mirror;

import java.util.HexFormat;
import org.apache.kafka.common.TopicPartition;

/** Prints records of MirrorMaker 2 as its own classes write them: topic, key, value and fields, a JSON line each. */
public class MirrorRecords {
    private static void print(String topic, byte[] key, byte[] value, String fields) {
        HexFormat hex = HexFormat.of();
        System.out.printf("{\"topic\": \"%s\", \"key\": \"%s\", \"value\": \"%s\", %s}%n",
            topic, hex.formatHex(key), hex.formatHex(value), fields);
    }

    public static void main(String[] arguments) {
        for (Object[] one : new Object[][] {{"orders", 0, 0L, 0L}, {"a.b-c_d", 7, 1L << 40, 42L}, {"größe", 2, 5L, -1L}}) {
            OffsetSync sync = new OffsetSync(new TopicPartition((String) one[0], (int) one[1]), (long) one[2], (long) one[3]);
            print("mm2-offset-syncs.backup.internal", sync.recordKey(), sync.recordValue(), String.format(
                "\"key_topic\": \"%s\", \"key_partition\": %d, \"upstream_offset\": %d, \"value_offset\": %d", one));
        }
        for (Object[] one : new Object[][] {
                {"group", "primary.orders", 0, 12L, 10L, ""}, {"grüne", "primary.x", 31, Long.MAX_VALUE, 0L, "note"}}) {
            Checkpoint checkpoint = new Checkpoint((String) one[0], new TopicPartition((String) one[1], (int) one[2]),
                (long) one[3], (long) one[4], (String) one[5]);
            print("primary.checkpoints.internal", checkpoint.recordKey(), checkpoint.recordValue(), String.format(
                "\"group\": \"%s\", \"key_topic\": \"%s\", \"key_partition\": %d, \"upstream_offset\": %d,"
                + " \"value_offset\": %d, \"metadata\": \"%s\"", one));
        }
        for (Object[] one : new Object[][] {{"primary", "backup", 1700000000000L}, {"", "b", -1L}}) {
            Heartbeat heartbeat = new Heartbeat((String) one[0], (String) one[1], (long) one[2]);
            print("heartbeats", heartbeat.recordKey(), heartbeat.recordValue(), String.format(
                "\"source_cluster_alias\": \"%s\", \"target_cluster_alias\": \"%s\", \"value_timestamp\": %d", one));
        }
    }
}
