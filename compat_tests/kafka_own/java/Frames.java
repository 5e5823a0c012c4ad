package org.apache.kafka.common.test.junit;

import java.nio.ByteBuffer;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.requests.*;

final class Frames {

    static ByteBuffer serialize(AbstractRequest request, RequestHeader header) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        int size =
            header.data().size(cache, header.headerVersion()) +
            request.data().size(cache, request.version());
        ByteBuffer b = ByteBuffer.allocate(size);
        ByteBufferAccessor a = new ByteBufferAccessor(b);
        header.data().write(a, cache, header.headerVersion());
        request.data().write(a, cache, request.version());
        b.flip();
        return b;
    }
}
