//! Record batches with kafka-protocol. Usage: records WORK FILE WARM-UPS. Does the work so often unseen; then as often
//! as each line of the standard input says. Records that are read are answered with: records, bytes of keys, bytes of
//! values, headers, sum of offsets, sum of timestamps. Batches that are written: records, bytes, sum of checksums.
use bytes::{Bytes, BytesMut};
use kafka_protocol::records::{RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, RecordSet};
use std::io::BufRead;

const CRC_AT: usize = 17;

fn decode(log: &Bytes) -> Vec<i64> {
    let mut left = log.clone();
    let mut sums = vec![0; 6];
    while !left.is_empty() {
        for record in RecordBatchDecoder::decode(&mut left).unwrap().records {
            sums[0] += 1;
            sums[1] += record.key.map_or(0, |key| key.len() as i64);
            sums[2] += record.value.map_or(0, |value| value.len() as i64);
            sums[3] += record.headers.len() as i64;
            sums[4] += record.offset;
            sums[5] += record.timestamp;
        }
    }
    sums
}

fn scan(log: &Bytes) -> Vec<i64> {
    let batches = RecordBatchDecoder::decode_batch_info(&mut log.clone()).unwrap();
    let last = |batch: &kafka_protocol::records::BatchDecodeInfo| batch.min_offset + batch.record_count as i64 - 1;
    vec![batches.iter().map(|batch| batch.record_count as i64).sum(), batches.iter().map(last).sum()]
}

fn sets(log: &Bytes) -> Vec<RecordSet> {
    let mut left = log.clone();
    let mut sets = Vec::new();
    while !left.is_empty() {
        sets.push(RecordBatchDecoder::decode(&mut left).unwrap());
    }
    sets
}

fn encode(sets: &[RecordSet], out: &mut BytesMut) -> Vec<i64> {
    let mut sums = vec![0; 3];
    for set in sets {
        out.clear();
        let options = RecordEncodeOptions { version: 2, compression: set.compression };
        RecordBatchEncoder::encode(out, set.records.iter(), &options).unwrap();
        sums[0] += set.records.len() as i64;
        sums[1] += out.len() as i64;
        sums[2] += u32::from_be_bytes(out[CRC_AT..CRC_AT + 4].try_into().unwrap()) as i64;
    }
    sums
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let log = Bytes::from(std::fs::read(&arguments[2]).unwrap());
    let mut work: Box<dyn FnMut() -> Vec<i64>> = match arguments[1].as_str() {
        "decode" => Box::new(move || decode(&log)),
        "scan" => Box::new(move || scan(&log)),
        "encode" => {
            let sets = sets(&log);
            let mut out = BytesMut::with_capacity(1 << 20);
            Box::new(move || encode(&sets, &mut out))
        }
        name => panic!("unknown work {name}"),
    };
    for _ in 0..arguments[3].parse().unwrap() {
        work();
    }
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let times: usize = line.unwrap().parse().unwrap();
        let sums: Vec<String> = (0..times).map(|_| work()).last().unwrap().iter().map(i64::to_string).collect();
        println!("{}", sums.join(" "));
    }
}
