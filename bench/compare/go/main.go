// Record batches with kmsg of franz-go. Usage: records WORK FILE WARM-UPS. Does the work so often unseen; then as
// often as each line of the standard input says, and answers with: records, bytes of keys, bytes of values, headers, sum of
// offsets, sum of timestamps.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	lengthAt     = 8
	overhead     = 12
	attributesAt = 21
	codecs       = 7
)

var (
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
	decompressor = kgo.DefaultDecompressor()
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func decode(log []byte) (sums [6]int64) {
	var batch kmsg.RecordBatch
	for len(log) > 0 {
		size := overhead + int(binary.BigEndian.Uint32(log[lengthAt:]))
		must(batch.ReadFrom(log[:size]))
		if int32(crc32.Checksum(log[attributesAt:size], castagnoli)) != batch.CRC {
			panic("checksum")
		}
		add(&batch, &sums)
		log = log[size:]
	}
	return sums
}

func add(batch *kmsg.RecordBatch, sums *[6]int64) {
	var record kmsg.Record
	records := batch.Records
	if codec := batch.Attributes & codecs; codec != 0 {
		var err error
		records, err = decompressor.Decompress(records, kgo.CompressionCodecType(codec))
		must(err)
	}
	for left := batch.NumRecords; left > 0; left-- {
		length, width := kbin.Varint(records)
		size := int(length) + width
		must(record.ReadFrom(records[:size]))
		records = records[size:]
		sums[0]++
		sums[1] += int64(len(record.Key))
		sums[2] += int64(len(record.Value))
		sums[3] += int64(len(record.Headers))
		sums[4] += batch.FirstOffset + int64(record.OffsetDelta)
		sums[5] += batch.FirstTimestamp + record.TimestampDelta64
	}
}

func main() {
	log, err := os.ReadFile(os.Args[2])
	must(err)
	warmUps, err := strconv.Atoi(os.Args[3])
	must(err)
	if os.Args[1] != "decode" {
		panic("unknown work " + os.Args[1])
	}
	for ; warmUps > 0; warmUps-- {
		decode(log)
	}
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		times, err := strconv.Atoi(lines.Text())
		must(err)
		var sums [6]int64
		for ; times > 0; times-- {
			sums = decode(log)
		}
		fmt.Println(sums[0], sums[1], sums[2], sums[3], sums[4], sums[5])
	}
}
