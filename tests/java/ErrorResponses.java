import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * Reads responses as Kafka's clients do, and makes the error responses that Kafka makes.
 *
 * In:  int8 kind (0 a request's body, 1 a response's), int16 API key, int16 version,
 *      int16 error code (of kind 0), int32 length, body
 * Out: int8 status (0 read, 1 refused), int32 length, for kind 0 the response's body, for kind 1
 *      the error codes in it, separated by commas; or the reason
 */
public final class ErrorResponses {
    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 20));
        int kind;
        while ((kind = in.read()) >= 0) {
            ApiKeys key = ApiKeys.forId(in.readShort());
            short version = in.readShort();
            short code = in.readShort();
            byte[] body = new byte[in.readInt()];
            in.readFully(body);
            byte[] answer;
            int status = 0;
            try {
                answer = kind == 0 ? refusal(key, version, code, body) : codes(key, version, body);
            } catch (Exception e) {
                status = 1;
                answer = e.toString().getBytes(StandardCharsets.UTF_8);
            }
            out.writeByte(status);
            out.writeInt(answer.length);
            out.write(answer);
            out.flush();
        }
    }

    private static byte[] refusal(ApiKeys key, short version, short code, byte[] body) {
        Readable readable = new ByteBufferAccessor(ByteBuffer.wrap(body));
        AbstractRequest request =
            AbstractRequest.parseRequest(key, version, readable).request;
        AbstractResponse response =
            request.getErrorResponse(0, Errors.forCode(code).exception());
        if (response == null) {
            return new byte[0];
        }
        ByteBuffer written =
            MessageUtil.toByteBufferAccessor(response.data(), version).buffer();
        byte[] bytes = new byte[written.remaining()];
        written.get(bytes);
        return bytes;
    }

    private static byte[] codes(ApiKeys key, short version, byte[] body) {
        ByteBufferAccessor readable = new ByteBufferAccessor(ByteBuffer.wrap(body));
        AbstractResponse response = AbstractResponse.parseResponse(key, readable, version);
        // Java reads some responses to ApiVersions as version 0, from a copy.
        if (key != ApiKeys.API_VERSIONS && readable.remaining() != 0) {
            throw new IllegalStateException(readable.remaining() + " bytes were not read");
        }
        StringBuilder text = new StringBuilder();
        for (Map.Entry<Errors, Integer> each : response.errorCounts().entrySet()) {
            text.append(each.getKey().code()).append(',');
        }
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }
}
