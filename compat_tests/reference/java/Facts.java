import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordType;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

/** Prints numbers of Apache Kafka's, a line each: its kind, its name, its number. */
public final class Facts {
    public static void main(String[] ignored) {
        for (Errors error : Errors.values()) {
            line("error", error.name(), error.code());
        }
        for (MetadataRecordType type : MetadataRecordType.values()) {
            line("record", type.name(), type.id());
        }
        for (CoordinatorRecordType type : CoordinatorRecordType.values()) {
            line("group record", type.name(), type.id());
        }
        for (var type : org.apache.kafka.coordinator.share.generated.CoordinatorRecordType.values()) {
            line("share state record", type.name(), type.id());
        }
        for (MetadataVersion version : MetadataVersion.VERSIONS) {
            if (version.isProduction()) {
                line("metadata.version", version.version(), version.featureLevel());
                if (version.didMetadataChange()) {
                    line("other records", version.version(), version.featureLevel());
                }
            }
        }
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            line("feature", feature.featureName(), feature.latestProduction());
            line("new cluster", feature.featureName(), feature.defaultLevel(MetadataVersion.latestProduction()));
            for (MetadataVersion version : MetadataVersion.values()) {
                line("release " + version.featureLevel(), feature.featureName(), feature.defaultLevel(version));
            }
        }
    }

    private static void line(String kind, String name, int number) {
        System.out.println(kind + "\t" + name + "\t" + number);
    }
}
