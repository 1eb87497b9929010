// Reads and writes Kafka's messages with Kafka's own generated classes, for as long as stdin lasts.
//
//   java -cp <Jackson, what the clients need> MessageOracle <newest kafka-clients jar> <older jar>…
//
// A message is taken from the first jar that has its version. Everything is a size (int32) and that
// many bytes, numbers big-endian, text UTF-8. A request on stdin, all of it within one outer size:
//
//   target    text: "request 3", "response 3" (API key), "data ConsumerProtocolSubscription"
//   version   int16
//   count     int32, then so many tasks, each an int8 and
//     READ    frame                      a whole message without its size
//     WRITE   header JSON, body JSON
//
// The answer on stdout, within one outer size: for each task an int8 and
//
//     DONE    READ:  header JSON, body JSON, the frame written anew
//             WRITE: frame
//     FAILED  text of the exception
//
// A `data` message has no header: its JSON is empty.

import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

public class MessageOracle {
    static final byte READ = 0;
    static final byte DONE = 0;
    static final byte FAILED = 1;
    // NaN and the infinities as Python's json has them, which is not quite JSON.
    static final ObjectMapper MAPPER = JsonMapper.builder()
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
            .disable(JsonWriteFeature.WRITE_NAN_AS_STRINGS)
            .build();
    static final byte[] NOTHING = new byte[0];

    public static void main(String[] jars) throws Exception {
        List<Kafka> releases = new ArrayList<>();
        for (String jar : jars) {
            releases.add(new Kafka(new File(jar)));
        }
        DataInputStream input = new DataInputStream(System.in);
        DataOutputStream output = new DataOutputStream(System.out);
        while (true) {
            byte[] request;
            try {
                request = readBytes(input);
            } catch (EOFException end) {
                return;
            }
            writeBytes(output, answer(releases, request));
            output.flush();
        }
    }

    static byte[] answer(List<Kafka> releases, byte[] request) throws IOException {
        DataInputStream input = new DataInputStream(new ByteArrayInputStream(request));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream output = new DataOutputStream(bytes);
        String target = new String(readBytes(input), StandardCharsets.UTF_8);
        short version = input.readShort();
        for (int left = input.readInt(); left > 0; left--) {
            boolean isRead = input.readByte() == READ;
            byte[] first = readBytes(input);
            byte[] second = isRead ? NOTHING : readBytes(input);
            try {
                Pair pair = pairOf(releases, target, version);
                byte[][] parts = isRead ? pair.read(first) : pair.write(first, second);
                output.writeByte(DONE);
                for (byte[] part : parts) {
                    writeBytes(output, part);
                }
            } catch (ReflectiveOperationException | RuntimeException | IOException error) {
                Throwable cause =
                        error instanceof InvocationTargetException ? error.getCause() : error;
                output.writeByte(FAILED);
                writeBytes(output, cause.toString().getBytes(StandardCharsets.UTF_8));
            }
        }
        return bytes.toByteArray();
    }

    static Pair pairOf(List<Kafka> releases, String target, short version)
            throws ReflectiveOperationException {
        for (Kafka release : releases) {
            Pair pair = release.pair(target, version);
            if (pair != null) {
                return pair;
            }
        }
        throw new IllegalArgumentException("no jar has " + target + " version " + version);
    }

    static byte[] readBytes(DataInputStream input) throws IOException {
        byte[] bytes = new byte[input.readInt()];
        input.readFully(bytes);
        return bytes;
    }

    static void writeBytes(DataOutputStream output, byte[] bytes) throws IOException {
        output.writeInt(bytes.length);
        output.write(bytes);
    }

    // The header and the body of one message in one version.
    record Pair(Codec header, Codec body) {
        byte[][] read(byte[] frame) throws ReflectiveOperationException, IOException {
            ByteBuffer buffer = ByteBuffer.wrap(frame);
            Object headerMessage = header == null ? null : header.decode(buffer);
            Object bodyMessage = body.decode(buffer);
            if (buffer.hasRemaining()) {
                throw new IOException(buffer.remaining() + " bytes after the message");
            }
            return new byte[][] {
                header == null ? NOTHING : header.toJson(headerMessage),
                body.toJson(bodyMessage),
                encode(headerMessage, bodyMessage),
            };
        }

        byte[][] write(byte[] headerJson, byte[] bodyJson)
                throws ReflectiveOperationException, IOException {
            Object headerMessage = header == null ? null : header.fromJson(headerJson);
            return new byte[][] {encode(headerMessage, body.fromJson(bodyJson))};
        }

        byte[] encode(Object headerMessage, Object bodyMessage)
                throws ReflectiveOperationException, IOException {
            ByteArrayOutputStream frame = new ByteArrayOutputStream();
            if (header != null) {
                frame.write(header.encode(headerMessage));
            }
            frame.write(body.encode(bodyMessage));
            return frame.toByteArray();
        }
    }

    // One generated class in one version.
    static class Codec {
        final Kafka kafka;
        final Class<?> type;
        final Method writeJson;
        final Method readJson;
        final short version;

        Codec(Kafka kafka, Class<?> type, short version) throws ReflectiveOperationException {
            Class<?> converter = kafka.load(type.getName() + "JsonConverter");
            this.kafka = kafka;
            this.type = type;
            this.version = version;
            writeJson = converter.getMethod("write", type, short.class, boolean.class);
            readJson = converter.getMethod("read", JsonNode.class, short.class);
        }

        Object decode(ByteBuffer buffer) throws ReflectiveOperationException {
            Object message = type.getConstructor().newInstance();
            kafka.read.invoke(message, kafka.accessor.newInstance(buffer), version);
            return message;
        }

        byte[] encode(Object message) throws ReflectiveOperationException {
            Object cache = kafka.cache.getConstructor().newInstance();
            ByteBuffer buffer =
                    ByteBuffer.allocate((Integer) kafka.size.invoke(message, cache, version));
            kafka.write.invoke(message, kafka.accessor.newInstance(buffer), cache, version);
            if (buffer.hasRemaining()) {
                throw new IllegalStateException("written less than its size");
            }
            return buffer.array();
        }

        // Of records, JSON has the size alone.
        byte[] toJson(Object message) throws ReflectiveOperationException, IOException {
            return MAPPER.writeValueAsBytes(writeJson.invoke(null, message, version, false));
        }

        Object fromJson(byte[] json) throws ReflectiveOperationException, IOException {
            return readJson.invoke(null, MAPPER.readTree(json), version);
        }
    }

    // One release of kafka-clients, apart from all others.
    static class Kafka {
        static final String MESSAGE = "org.apache.kafka.common.message.";
        static final String PROTOCOL = "org.apache.kafka.common.protocol.";
        final ClassLoader loader;
        final java.lang.reflect.Constructor<?> accessor;
        final Class<?> cache;
        final Method read;
        final Method size;
        final Method write;
        final Map<String, Pair> pairs = new HashMap<>();

        Kafka(File jar) throws ReflectiveOperationException, IOException {
            URL[] urls = {jar.toURI().toURL()};
            loader = new URLClassLoader(urls, MessageOracle.class.getClassLoader());
            Class<?> message = load(PROTOCOL + "Message");
            accessor = load(PROTOCOL + "ByteBufferAccessor").getConstructor(ByteBuffer.class);
            cache = load(PROTOCOL + "ObjectSerializationCache");
            read = message.getMethod("read", load(PROTOCOL + "Readable"), short.class);
            size = message.getMethod("size", cache, short.class);
            write = message.getMethod("write", load(PROTOCOL + "Writable"), cache, short.class);
        }

        Class<?> load(String name) throws ClassNotFoundException {
            return Class.forName(name, true, loader);
        }

        // Null where this release has no such message, or not in that version.
        Pair pair(String target, short version) throws ReflectiveOperationException {
            String key = target + " " + version;
            if (!pairs.containsKey(key)) {
                pairs.put(key, findPair(target.split(" "), version));
            }
            return pairs.get(key);
        }

        private Pair findPair(String[] target, short version) throws ReflectiveOperationException {
            if (target[0].equals("data")) {
                Class<?> type = load(MESSAGE + target[1]);
                return has(type, version) ? new Pair(null, new Codec(this, type, version)) : null;
            }
            Class<?> types = load(MESSAGE + "ApiMessageType");
            Object api;
            try {
                api = types.getMethod("fromApiKey", short.class)
                        .invoke(null, Short.valueOf(target[1]));
            } catch (InvocationTargetException unknown) {
                return null;
            }
            boolean isRequest = target[0].equals("request");
            String maker = isRequest ? "newRequest" : "newResponse";
            Class<?> type = types.getMethod(maker).invoke(api).getClass();
            if (!has(type, version)) {
                return null;
            }
            Class<?> header = load(MESSAGE + (isRequest ? "Request" : "Response") + "HeaderData");
            Object headerVersion = types.getMethod(target[0] + "HeaderVersion", short.class)
                    .invoke(api, version);
            return new Pair(
                    new Codec(this, header, (Short) headerVersion),
                    new Codec(this, type, version));
        }

        private boolean has(Class<?> type, short version) throws ReflectiveOperationException {
            Object message = type.getConstructor().newInstance();
            return version >= (Short) type.getMethod("lowestSupportedVersion").invoke(message)
                    && version <= (Short) type.getMethod("highestSupportedVersion").invoke(message);
        }
    }
}
