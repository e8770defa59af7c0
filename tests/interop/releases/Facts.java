import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.FeatureVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Prints what a release says of its levels: a line with a list of those of metadata.version, with all that each answers
 * without an argument, and a line with those of the other features.
 */
public final class Facts {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        List<Map<String, Object>> versions = new ArrayList<>();
        for (MetadataVersion version : MetadataVersion.values()) {
            versions.add(facts(version));
        }
        System.out.println(json.writeValueAsString(versions));
        Map<String, Object> features = new LinkedHashMap<>();
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            List<Map<String, Object>> levels = new ArrayList<>();
            for (FeatureVersion version : feature.featureVersions()) {
                if (version.featureLevel() > feature.latestProduction()) {
                    continue;
                }
                Map<String, Object> level = new LinkedHashMap<>();
                level.put("level", version.featureLevel());
                level.put("bootstrap_metadata_version", version.bootstrapMetadataVersion().version());
                if (!version.dependencies().isEmpty()) {
                    level.put("dependencies", version.dependencies());
                }
                levels.add(level);
            }
            features.put(feature.featureName(), Map.of("levels", levels));
        }
        System.out.println(json.writeValueAsString(features));
    }

    private static Map<String, Object> facts(MetadataVersion version) throws Exception {
        Map<String, Object> facts = new TreeMap<>();
        for (Method method : MetadataVersion.class.getMethods()) {
            boolean asks = method.getParameterCount() == 0 && method.getDeclaringClass() == MetadataVersion.class;
            if (!asks || Modifier.isStatic(method.getModifiers()) || method.getName().equals("toString")) {
                continue;
            }
            try {
                facts.put(method.getName(), method.invoke(version));
            } catch (InvocationTargetException none) {
                facts.put(method.getName(), null); // the level has no such record
            }
        }
        Map<String, Object> named = new LinkedHashMap<>(Map.of("id", version.name()));
        named.putAll(facts);
        return named;
    }
}
