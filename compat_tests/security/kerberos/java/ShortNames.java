import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;

/** Of each line "rule;rule TAB principal" prints the user's name, "!" if there is none. */
class ShortNames {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split("\t", -1);
            System.out.println(name(List.of(parts[0].split(";")), parts[1]));
        }
    }

    private static String name(List<String> rules, String principal) {
        KerberosShortNamer namer;
        try {
            namer = KerberosShortNamer.fromUnparsedRules("R", rules);
        } catch (RuntimeException error) {
            return "?";
        }
        try {
            return "=" + namer.shortName(KerberosName.parse(principal));
        } catch (Exception error) {
            return "!";
        }
    }
}
