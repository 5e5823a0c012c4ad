import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.ConsumerProtocolAssignment;
import org.apache.kafka.common.message.ConsumerProtocolSubscription;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordType;
import org.apache.kafka.coordinator.transaction.generated.TransactionLogValue;

/**
 * Reads messages with Kafka's generated classes and writes them again.
 *
 * In:  int8 kind (0 request, 1 response, 2 metadata record, 3 value in __transaction_state,
 *      4 and 5 key and value in __consumer_offsets, 6 and 7 the same in __share_group_state,
 *      8 subscription or assignment of a consumer),
 *      int16 API key or record type, int16 version, int32 length, body
 * Out: int8 status (0 read, 1 refused), int32 length, body or the reason,
 *      int32 length, the message as JSON (empty when refused)
 */
public final class MessageEcho {
    private static final Map<Class<?>, Method> CONVERTERS = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 20));
        int kind;
        while ((kind = in.read()) >= 0) {
            short key = in.readShort();
            short version = in.readShort();
            byte[] body = new byte[in.readInt()];
            in.readFully(body);
            try {
                answer(out, newMessage(kind, key), version, body);
            } catch (RuntimeException e) {
                out.writeByte(1);
                writeBytes(out, e.toString().getBytes(StandardCharsets.UTF_8));
                writeBytes(out, new byte[0]);
            }
            out.flush();
        }
    }

    private static void answer(DataOutputStream out, ApiMessage message, short version, byte[] body)
            throws IOException {
        ByteBufferAccessor readable = new ByteBufferAccessor(ByteBuffer.wrap(body));
        message.read(readable, version);
        if (readable.remaining() != 0) {
            throw new IllegalStateException(readable.remaining() + " bytes were not read");
        }
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer written = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(written), cache, version);
        JsonNode json = asJson(message, version);
        out.writeByte(0);
        writeBytes(out, written.array());
        writeBytes(out, json.toString().getBytes(StandardCharsets.UTF_8));
    }

    private static ApiMessage newMessage(int kind, short key) {
        switch (kind) {
            case 0: return ApiMessageType.fromApiKey(key).newRequest();
            case 1: return ApiMessageType.fromApiKey(key).newResponse();
            case 2: return MetadataRecordType.fromId(key).newMetadataRecord();
            case 3: return new TransactionLogValue();
            case 4: return CoordinatorRecordType.fromId(key).newRecordKey();
            case 5: return CoordinatorRecordType.fromId(key).newRecordValue();
            case 6: return org.apache.kafka.coordinator.share.generated.CoordinatorRecordType.fromId(key).newRecordKey();
            case 7: return org.apache.kafka.coordinator.share.generated.CoordinatorRecordType.fromId(key).newRecordValue();
            case 8: return key == 0 ? new ConsumerProtocolSubscription() : new ConsumerProtocolAssignment();
            default: throw new IllegalArgumentException("kind " + kind);
        }
    }

    private static JsonNode asJson(ApiMessage message, short version) {
        try {
            Method converter = CONVERTERS.get(message.getClass());
            if (converter == null) {
                Class<?> found = Class.forName(message.getClass().getName() + "JsonConverter");
                converter = found.getMethod("write", message.getClass(), short.class);
                CONVERTERS.put(message.getClass(), converter);
            }
            return (ObjectNode) converter.invoke(null, message, version);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(e.getCause());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void writeBytes(DataOutputStream out, byte[] bytes) throws IOException {
        out.writeInt(bytes.length);
        out.write(bytes);
    }
}
