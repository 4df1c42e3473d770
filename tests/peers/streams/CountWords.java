import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words with Kafka Streams: each value of the topic `words` is a word; the topic `counts` gets a record with the
 * word as key and the number of its occurrences so far as value, in decimal digits.
 *
 * The words pass a repartition topic, because the keys of `words` are something else, and are counted in a store with a
 * changelog topic. Nothing is cached, so that each word makes one record in `counts`.
 *
 * The arguments are settings of Kafka Streams, `name=value`. Prints the state of the application whenever it changes.
 * SIGTERM closes it; an exception that Kafka Streams does not handle ends it with status 1.
 */
public final class CountWords {
    private static final String INPUT = "words";
    private static final String STORE = "totals";
    private static final String OUTPUT = "counts";

    public static void main(String[] arguments) throws InterruptedException {
        KafkaStreams streams = new KafkaStreams(topology(), settings(arguments));
        CountDownLatch end = new CountDownLatch(1);
        streams.setStateListener((state, before) -> {
            System.out.println(state);
            if (state.hasCompletedShutdown()) {
                end.countDown();
            }
        });
        Thread close = new Thread(() -> streams.close(Duration.ofSeconds(30)));
        Runtime.getRuntime().addShutdownHook(close);
        streams.start();
        end.await();
        if (streams.state() == KafkaStreams.State.ERROR) {
            Runtime.getRuntime().halt(1);
        }
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(INPUT, Consumed.with(Serdes.String(), Serdes.String()))
            .groupBy((number, word) -> word, Grouped.with("by-word", Serdes.String(), Serdes.String()))
            .count(Materialized.as(STORE))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(OUTPUT, Produced.with(Serdes.String(), Serdes.String()));
        return builder.build();
    }

    private static Properties settings(String[] arguments) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        for (String argument : arguments) {
            String[] sides = argument.split("=", 2);
            settings.put(sides[0], sides[1]);
        }
        return settings;
    }
}
