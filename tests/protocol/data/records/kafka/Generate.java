// Writes the files beside it with Apache Kafka's own classes:
//   javac -cp 'LIBS/*' Generate.java && java -cp 'LIBS/*:.' Generate DIRECTORY
// where LIBS holds kafka-clients 4.3.1 and what it depends on. tests/protocol/golden_records.py states the same records.

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

public class Generate {
    static final long BASE_OFFSET = 100, BASE_TIMESTAMP = 1_600_000_000_000L, APPEND_TIME = 1_700_000_000_123L;
    static final long DELETE_HORIZON = 1_650_000_000_000L, NONE = -1;

    static byte[] build(int magic, CompressionType type, TimestampType timestampType, long deleteHorizon) {
        var builder = new MemoryRecordsBuilder(new ByteBufferOutputStream(ByteBuffer.allocate(1 << 20)), (byte) magic,
            Compression.of(type).build(), timestampType, BASE_OFFSET,
            timestampType == TimestampType.LOG_APPEND_TIME ? APPEND_TIME : NONE,
            magic < 2 ? -1 : 4000, (short) (magic < 2 ? -1 : 7), magic < 2 ? -1 : 30, false, false, 5, 1 << 20, deleteHorizon);
        for (int i = 0; i < 20; i++) {
            byte[] key = i % 4 == 0 ? null : ("key-" + i).getBytes();
            byte[] value = i % 7 == 0 ? null : ("value-" + i + " ").repeat(i % 5).getBytes();
            if (i == 19 && type != CompressionType.NONE) value = new byte[200_000];
            Header[] headers = magic < 2 || i % 3 != 0 ? new Header[0]
                : new Header[] {new RecordHeader("trace", ("t" + i).getBytes()), new RecordHeader("none", (byte[]) null)};
            builder.append(BASE_TIMESTAMP + i * 1000L - (i == 5 ? 3_600_000 : 0), key, value, headers);
        }
        ByteBuffer buffer = builder.build().buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    public static void main(String[] args) throws Exception {
        Path out = Path.of(args[0]);
        for (int magic = 0; magic <= 2; magic++)
            for (CompressionType type : CompressionType.values())
                for (TimestampType timestampType : new TimestampType[] {TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME}) {
                    boolean isAppendTime = timestampType == TimestampType.LOG_APPEND_TIME;
                    if (magic < 2 && type == CompressionType.ZSTD || magic == 0 && isAppendTime) continue;
                    String name = "v" + magic + "-" + type.name + (isAppendTime ? "-append-time" : "") + ".bin";
                    Files.write(out.resolve(name), build(magic, type, timestampType, NONE));
                }
        Files.write(out.resolve("v2-none-delete-horizon.bin"),
            build(2, CompressionType.NONE, TimestampType.CREATE_TIME, DELETE_HORIZON));
    }
}
