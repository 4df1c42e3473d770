import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Copies the partition 0 of a topic to another topic, with the offsets, in transactions of a given length, as a stream
 * processor does. At the end of the input it begins again, so that a run is as long as wanted. Prints the bytes of all copied
 * values, those of the measured seconds, and these seconds.
 *
 * <p>Arguments: bootstrap servers, input topic, output topic, milliseconds of a transaction, seconds before the measurement,
 * measured seconds.
 */
public final class CopyJob {
    public static void main(String[] arguments) {
        String bootstrap = arguments[0], input = arguments[1], output = arguments[2];
        long transactionNs = Long.parseLong(arguments[3]) * 1_000_000;
        long warmUpNs = (long) (Double.parseDouble(arguments[4]) * 1e9);
        long measuredNs = (long) (Double.parseDouble(arguments[5]) * 1e9);
        TopicPartition partition = new TopicPartition(input, 0);
        long copied = 0, uncounted = 0, uncountedNs = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                        Map.of("bootstrap.servers", bootstrap, "group.id", "copy-job", "enable.auto.commit", "false",
                                "isolation.level", "read_committed"),
                        new ByteArrayDeserializer(), new ByteArrayDeserializer());
                KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                        Map.of("bootstrap.servers", bootstrap, "transactional.id", "copy-job", "linger.ms", "5"),
                        new ByteArraySerializer(), new ByteArraySerializer())) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            producer.initTransactions();
            long start = System.nanoTime(), counted = start + warmUpNs, now = start;
            while (now < counted + measuredNs) {
                producer.beginTransaction();
                long until = now + transactionNs;
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                while (System.nanoTime() < until) {
                    ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(10));
                    for (ConsumerRecord<byte[], byte[]> record : polled) {
                        producer.send(new ProducerRecord<>(output, record.key(), record.value()));
                        offsets.put(partition, new OffsetAndMetadata(record.offset() + 1));
                        copied += record.value().length;
                    }
                    if (consumer.position(partition) >= end) {
                        consumer.seekToBeginning(List.of(partition));
                    }
                }
                producer.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata("copy-job"));
                producer.commitTransaction();
                now = System.nanoTime();
                if (now < counted) {
                    uncounted = copied;
                    uncountedNs = now - start;
                }
            }
            System.out.println(copied + " " + (copied - uncounted) + " " + (now - start - uncountedNs) / 1e9);
        }
    }
}
