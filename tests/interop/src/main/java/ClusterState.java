import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.ConfigResource.Type;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/**
 * Prints what Admin says of the metadata as one line {"topics", "configs", "features", "scram", "quotas", "acls"}.
 * Argument: the broker.
 */
public final class ClusterState {
    private static final Map<Type, ConfigSource> SOURCES = Map.of(
            Type.TOPIC, ConfigSource.DYNAMIC_TOPIC_CONFIG,
            Type.BROKER, ConfigSource.DYNAMIC_BROKER_CONFIG,
            Type.CLIENT_METRICS, ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
            Type.GROUP, ConfigSource.DYNAMIC_GROUP_CONFIG);

    private final Admin admin;

    private ClusterState(Admin admin) {
        this.admin = admin;
    }

    public static void main(String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            var state = new ClusterState(admin);
            System.out.write(Json.line(Map.of(
                    "topics", state.topics(),
                    "configs", state.configs(),
                    "features", state.features(),
                    "scram", state.scram(),
                    "quotas", state.quotas(),
                    "acls", state.acls())));
        }
        System.out.flush();
    }

    private Map<String, Object> topics() throws Exception {
        Map<String, Object> topics = new TreeMap<>();
        for (TopicDescription topic : get(admin.describeTopics(topicNames()).allTopicNames()).values()) {
            List<List<Integer>> replicas = topic.partitions().stream()
                    .map(partition -> partition.replicas().stream().map(Node::id).toList())
                    .toList();
            topics.put(topic.name(), Map.of("topic_id", topic.topicId().toString(), "replicas", replicas));
        }
        return topics;
    }

    private Collection<String> topicNames() throws Exception {
        return get(admin.listTopics(new ListTopicsOptions().listInternal(true)).names());
    }

    /** What was set, and no defaults: [type, name, config, value] each; a password's value is null. */
    private List<Object> configs() throws Exception {
        List<ConfigResource> resources = new ArrayList<>(List.of(new ConfigResource(Type.BROKER, "")));
        topicNames().forEach(name -> resources.add(new ConfigResource(Type.TOPIC, name)));
        for (Node node : get(admin.describeCluster().nodes())) {
            resources.add(new ConfigResource(Type.BROKER, node.idString()));
        }
        Set<Type> others = Set.of(Type.CLIENT_METRICS, Type.GROUP);
        resources.addAll(get(admin.listConfigResources(others, new ListConfigResourcesOptions()).all()));
        List<Object> found = new ArrayList<>();
        for (Map.Entry<ConfigResource, Config> described : get(admin.describeConfigs(resources).all()).entrySet()) {
            ConfigResource resource = described.getKey();
            for (ConfigEntry entry : described.getValue().entries()) {
                if (entry.source() == source(resource)) {
                    var line = new ArrayList<>(List.of(resource.type().name(), resource.name(), entry.name()));
                    line.add(entry.value());
                    found.add(line);
                }
            }
        }
        return found;
    }

    private static ConfigSource source(ConfigResource resource) {
        return resource.type() == Type.BROKER && resource.name().isEmpty()
                ? ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
                : SOURCES.get(resource.type());
    }

    private Map<String, Object> features() throws Exception {
        Map<String, Object> levels = new TreeMap<>();
        get(admin.describeFeatures().featureMetadata())
                .finalizedFeatures()
                .forEach((name, range) -> levels.put(name, range.maxVersionLevel()));
        return levels;
    }

    private List<Object> scram() throws Exception {
        List<Object> found = new ArrayList<>();
        for (var user : get(admin.describeUserScramCredentials().all()).values()) {
            user.credentialInfos().forEach(info ->
                    found.add(List.of(user.name(), (int) info.mechanism().type(), info.iterations())));
        }
        return found;
    }

    /** [{type: name or null}, {quota: limit}] each. */
    private List<Object> quotas() throws Exception {
        List<Object> found = new ArrayList<>();
        get(admin.describeClientQuotas(ClientQuotaFilter.all()).entities()).forEach((entity, limits) ->
                found.add(List.of(new HashMap<>(entity.entries()), limits)));
        return found;
    }

    private List<Object> acls() throws Exception {
        List<Object> found = new ArrayList<>();
        for (AclBinding acl : get(admin.describeAcls(AclBindingFilter.ANY).values())) {
            found.add(List.of(
                    (int) acl.pattern().resourceType().code(),
                    acl.pattern().name(),
                    (int) acl.pattern().patternType().code(),
                    acl.entry().principal(),
                    acl.entry().host(),
                    (int) acl.entry().operation().code(),
                    (int) acl.entry().permissionType().code()));
        }
        return found;
    }

    private static <T> T get(KafkaFuture<T> future) throws Exception {
        return future.get(60, TimeUnit.SECONDS);
    }
}
