//! The combined ports of dispatch and of the ingress. The resources that the settings name keep
//! each promise.

use delivery::subscription::NoFields;
use std::collections::BTreeSet;
use std::sync::Arc;

use adapters::aws_identity::Identity;
use adapters::aws_ports::{AwsIngressPorts, AwsPorts};
use adapters::live_topics::Location;
use adapters::machine::Machine;
use adapters::secrets::SecretStores;
use adapters::settings::{self, DispatchSettings, IngressSettings};
use delivery::delivery::health::news::NEWS;
use delivery::machine::consent::{ConsentKey, Granted, Rate};
use delivery::ports::{
    AwsIdentity as _, Consents as _, DispatchPorts as _, IngressPorts as _, JitterSource as _,
    PublishEvents as _, PublisherKeys as _, RequestPorts as _, Secrets as _,
    SubscriptionSource as _,
};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use delivery::subscription::{Consent, Destination};
use delivery::table::{Entry, Expected, ItemKey, Table as _};
use lastmile_tests::topics::apply;
use local::aws::{TABLE, local_clients};

use crate::cloud::Cloud;

const SUBSCRIPTIONS: &str = "s3://config/subscriptions/";

/// The ports of dispatch, with its subscriptions in the local AWS. The identity is that of a person
/// who shows it to no destination.
fn of_dispatch(cloud: &Cloud) -> AwsPorts {
    let environment = |name: &str| match name {
        settings::SUBSCRIPTIONS_URI => Some(SUBSCRIPTIONS.to_owned()),
        settings::TABLE_NAME => Some(TABLE.to_owned()),
        settings::DEAD_LETTER_CONTAINER => Some("dead-letters".to_owned()),
        queue if queue.ends_with("_QUEUE_URL") => Some(cloud.aws.queue_url("events")),
        _ => None,
    };
    let settings = DispatchSettings::read(environment).expect("settings");
    let secrets = SecretStores::new(|name, _| Some(format!("of {name}")), Machine);
    let (secrets, nobody) = (secrets.expect("stores"), Identity::of_person(|_| false));
    let clients = local_clients(&cloud.aws.endpoint());
    AwsPorts::with_secrets(&clients, &settings, secrets, nobody).expect("ports")
}

fn destination() -> Destination {
    Destination::new("https://example.com/".parse().expect("a URL"), 1)
}

#[tokio::test]
async fn dispatch_reads_its_subscriptions_below_a_prefix() {
    let cloud = Cloud::start().await;
    let folder = Location::parse(SUBSCRIPTIONS).expect("a location").folder(cloud.s3.clone());
    apply(&folder, &subscription("a")).await;

    let orders: BTreeSet<TopicName> = ["shop/orders".parse().expect("a topic")].into();
    let ports = of_dispatch(&cloud);
    let known: Arc<Catalogue> = ports.subscriptions().current().await.expect("subscriptions");
    let asked = ports.subscriptions().with_topics(known, &orders).await;
    assert_eq!(names(&asked), ["a"]);
    let again = of_dispatch(&cloud).subscriptions().reread(Arc::default(), &orders).await;
    assert_eq!(names(&again.expect("subscriptions")), ["a"]);
}

/// A subscription of this name.
fn subscription(name: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: 'https://{name}.test/'}}}}\n"
    )
}

fn names(catalogue: &Catalogue) -> Vec<String> {
    catalogue.subscriptions().map(|subscription| subscription.name.name.clone()).collect()
}

#[tokio::test]
async fn what_one_dispatch_function_shares_another_finds() {
    let cloud = Cloud::start().await;
    let (writer, reader) = (of_dispatch(&cloud), of_dispatch(&cloud));

    let key = ConsentKey::new("shop", &destination().url, &Consent::EventGrid(NoFields));
    let granted =
        Granted::new(&destination(), &Consent::EventGrid(NoFields), Rate::parse("7").unwrap(), 1);
    writer.consents().keep_consent(&key, &granted).await.expect("kept");
    assert_eq!(reader.consents().consent(&key).await, Ok(Some(granted)));

    let (item, entry) = (ItemKey::new(NEWS, "1".to_owned()), |text: &str| Entry {
        text: text.to_owned(),
        expires_ms: None,
    });
    let replace =
        async |text| writer.table().replace(&item, &entry(text), Expected::Nothing, 0).await;
    assert_eq!(replace("1").await, Ok(true));
    let found = reader.table().entry(&item, 0).await.expect("the table can be reached");
    assert_eq!(found.map(|stored| stored.text), Some("1".to_owned()));
    assert_eq!(replace("2").await, Ok(false));
}

#[tokio::test]
async fn dispatch_has_the_secrets_the_identity_and_the_jitter_that_it_was_given() {
    let cloud = Cloud::start().await;
    let ports = of_dispatch(&cloud);
    let name = "env:TOKEN".parse().expect("a name");
    let keyring = ports.secrets().keyring(&[&name], &destination().url).await.expect("secrets");
    assert_eq!(keyring.get(&name).expect("it is there").expose(), "of TOKEN");
    let refused =
        ports.identity().may_show(&destination()).expect_err("nobody may see who that is");
    assert!(refused.contains("example.com"), "{refused}");
    let jitters: BTreeSet<u32> = (0..8).map(|_| ports.next_jitter().0).collect();
    assert!(jitters.len() > 1, "{jitters:?}");
}

#[tokio::test]
async fn the_ingress_publishes_to_the_events_queue_and_looks_up_keys() {
    let cloud = Cloud::start().await;
    let environment = |name: &str| match name {
        settings::EVENTS_QUEUE_URL => Some(cloud.aws.queue_url("events")),
        settings::INGRESS_AUTHORIZATION => Some("iam".to_owned()),
        _ => None,
    };
    let settings = IngressSettings::read(environment).expect("settings");
    let clients = local_clients(&cloud.aws.endpoint());
    let ports = AwsIngressPorts::new(&clients, &settings).expect("ports");

    let id = ports.events().publish(&"shop/orders".parse().expect("a topic"), "{}").await;
    let receive = cloud.sqs.receive_message().queue_url(cloud.aws.queue_url("events"));
    let received = receive.wait_time_seconds(5).send().await.expect("a receive");
    assert_eq!(received.messages()[0].message_id(), id.as_deref().ok());

    let names = ["env:HOME", "env:A_VARIABLE_THAT_NO_MACHINE_HAS"];
    let names = names.map(|name| name.parse().expect("a name"));
    let keys = ports.keys().publisher_keys(&names).await;
    let [Ok(found), Err(missing)] = &keys[..] else { panic!("one is set: {keys:?}") };
    assert_eq!(std::env::var("HOME").as_deref(), Ok(found.expose()));
    assert!(missing.to_string().contains("A_VARIABLE_THAT_NO_MACHINE_HAS"), "{missing}");
}
