import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member of a group with Java's consumer: prints its events and obeys the same commands as {@code member.py}.
 *
 * <p>Arguments: bootstrap servers, group, pattern of topics, protocol (classic, consumer), assignor, commits (auto, poll), then
 * settings as {@code name=value}.
 */
public final class Member implements ConsumerRebalanceListener {
    private static final CountDownLatch JOINING = new CountDownLatch(1);
    private static volatile boolean isClosing = false;
    private static volatile double slowSeconds = 0;

    public static void main(String[] arguments) throws InterruptedException {
        Map<String, Object> settings = new HashMap<>(
                Map.of("bootstrap.servers", arguments[0], "group.id", arguments[1], "group.protocol", arguments[3]));
        boolean isConsumerProtocol = arguments[3].equals("consumer"), commitsEachPoll = arguments[5].equals("poll");
        settings.put("enable.auto.commit", String.valueOf(!commitsEachPoll));
        if (!isConsumerProtocol) {
            settings.put("partition.assignment.strategy", arguments[4].equals("range")
                    ? "org.apache.kafka.clients.consumer.RangeAssignor"
                    : "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
        }
        for (int index = 6; index < arguments.length; index++) {
            String[] setting = arguments[index].split("=", 2);
            if (!isConsumerProtocol || !setting[0].matches("session.timeout.ms|heartbeat.interval.ms")) {
                settings.put(setting[0], setting[1]);
            }
        }
        KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Thread commands = new Thread(Member::obey);
        commands.setDaemon(true);
        commands.start();
        attempt(() -> consumer.listTopics());
        print("ready", "\"partitions\": []");
        JOINING.await();
        if (isConsumerProtocol) {
            consumer.subscribe(new SubscriptionPattern(arguments[2]), new Member());
        } else {
            consumer.subscribe(Pattern.compile(arguments[2]), new Member());
        }
        while (!isClosing) {
            attempt(() -> {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                for (TopicPartition partition : records.partitions()) {
                    print("read", "\"partition\": \"" + partition + "\", \"numbers\": ["
                            + records.records(partition).stream()
                                    .map(record -> new String(record.value(), StandardCharsets.US_ASCII))
                                    .collect(Collectors.joining(", "))
                            + "]");
                }
                if (commitsEachPoll && !records.isEmpty()) {
                    consumer.commitSync();
                    print("committed", "\"partitions\": " + names(records.partitions()));
                }
            });
        }
        attempt(consumer::close);
        print("closed", "\"partitions\": []");
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        print("assigned", "\"partitions\": " + names(partitions));
        beSlow(partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        print("revoking", "\"partitions\": " + names(partitions));
        beSlow(partitions);
        print("revoked", "\"partitions\": " + names(partitions));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        print("lost", "\"partitions\": " + names(partitions));
    }

    private static void beSlow(Collection<TopicPartition> partitions) {
        double seconds = slowSeconds;
        if (seconds > 0 && !partitions.isEmpty()) {
            slowSeconds = 0;
            try {
                Thread.sleep((long) (seconds * 1000));
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static void attempt(Runnable work) {
        try {
            work.run();
        } catch (RuntimeException error) {
            print("error", "\"error\": \"" + error.toString().replaceAll("[\"\\\\\\p{Cntrl}]", "'") + "\"");
        }
    }

    private static void obey() {
        try (BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII))) {
            for (String line = commands.readLine(); line != null; line = commands.readLine()) {
                String[] words = line.split(" ");
                if (words[0].equals("join")) {
                    JOINING.countDown();
                } else if (words[0].equals("slow")) {
                    slowSeconds = Double.parseDouble(words[1]);
                } else {
                    break;
                }
            }
        } catch (IOException error) {
            print("error", "\"error\": \"commands: " + error + "\"");
        }
        isClosing = true;
        JOINING.countDown();
    }

    private static String names(Collection<TopicPartition> partitions) {
        return partitions.stream().map(each -> "\"" + each + "\"").collect(Collectors.joining(", ", "[", "]"));
    }

    private static synchronized void print(String event, String fields) {
        System.out.printf(Locale.ROOT, "{\"at\": %.3f, \"event\": \"%s\", %s}%n",
                System.currentTimeMillis() / 1000.0, event, fields);
        System.out.flush();
    }
}
