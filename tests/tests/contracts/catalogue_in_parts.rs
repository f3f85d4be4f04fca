//! A topic of a catalogue is read in parts: what was read of it, or is kept of others, is not read again.

use std::sync::Arc;

use catalogue::Changes;
use delivery::ports::SubscriptionSource as _;
use delivery::subscription::catalogue::Catalogue;
use lastmile_tests::catalogues::value;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::by_need::{Fixture, Reader, many, repair, topic};
use crate::subscriptions::{CHECK_EVERY_MS, REREAD_EVERY_MS, names, one};

#[tokio::test]
async fn of_a_topic_that_was_read_only_what_is_new_is_read_again() {
    let fixture = Fixture::in_folder();
    // Six megabytes: more than is kept of nodes, so that what is read again comes from the files.
    let of_one = value(&one("s0000").replace(".com/", &format!(".com/{}", "x".repeat(3_000))));
    let put = |changes: &mut Changes, number: usize| {
        let name = format!("s{number:04}");
        changes.put(format!("orders/{name}"), of_one.replace("s0000", &name));
    };
    let mut changes = Changes::default();
    (0..2_000).for_each(|number| put(&mut changes, number));
    fixture.apply(&one("a")).await;
    fixture.commit("shop", &changes).await;
    let reader = fixture.reader();
    assert_eq!(reader.orders().await.map(|all| all.len()), Ok(2_001));
    let old = fixture.objects("shop");
    let mut changes = Changes::default();
    put(&mut changes, 2_000);
    fixture.commit("shop", &changes).await;
    for file in old {
        std::fs::write(file, "damaged").expect("a file");
    }
    reader.clock.advance(CHECK_EVERY_MS);
    assert_eq!(reader.orders().await.map(|all| all.len()), Ok(2_002));
    fixture.reader().orders().await.expect_err("who has not read it before");
}

#[tokio::test]
async fn topics_share_the_leaves_of_their_namespace() {
    let fixture = Fixture::in_folder();
    // So many that they do not fit into the pointer, and so few that both topics are in one leaf.
    fixture.apply(&[many(), one("b").replace("orders", "others")].join("---\n")).await;
    let reader = fixture.reader();
    assert_eq!(reader.orders().await.map(|all| all.len()), Ok(200));
    drop(fixture.damage("shop"));
    let others = reader.topics(&["shop/others"]).await.expect("its leaf was read with the other");
    assert_eq!(names(&others), ["b"]);
    fixture.reader().topics(&["shop/others"]).await.expect_err("who has not read its leaf");
}

#[tokio::test]
async fn a_topic_stays_as_it_is_while_others_of_its_namespace_change() {
    let fixture = Fixture::in_folder();
    let of_one = value(&one("a").replace("orders", "z"));
    let mut changes = Changes::default();
    for number in 0..1_000 {
        changes.put(format!("z/s{number:03}"), of_one.as_str());
    }
    fixture.apply(&one("a")).await;
    fixture.commit("shop", &changes).await;
    let reader = fixture.reader();
    let before = reader.topics(&["shop/orders"]).await.expect("a topic");
    // Far from it, in another leaf.
    fixture.commit("shop", Changes::default().remove("z/s999")).await;
    reader.clock.advance(CHECK_EVERY_MS);
    let after = reader.topics(&["shop/orders", "shop/z"]).await.expect("topics");
    assert_eq!(after.subscriptions().count(), 1 + 999);
    let [before, after] = [&before, &after].map(|of| of.topic_subscriptions(&topic("shop/orders")));
    assert!(Arc::ptr_eq(before.expect("it is there"), after.expect("it is there")));
}

#[tokio::test]
async fn a_topic_that_was_repaired_is_not_put_off() {
    let fixture = Fixture::in_folder();
    fixture.apply(&one("a")).await;
    let reader = fixture.reader();
    assert_eq!(reader.orders().await, Ok(vec!["a".to_owned()]));
    fixture.apply(&many()).await;
    let damaged = fixture.damage("shop");
    reader.clock.advance(CHECK_EVERY_MS);
    assert_eq!(reader.orders().await, Ok(vec!["a".to_owned()]), "for half a minute");
    // The same subscriptions as before, in other leaves.
    repair(damaged);
    let mut changes = Changes::default();
    for number in 0..200 {
        changes.remove(format!("orders/s{number:03}"));
    }
    fixture.commit("shop", &changes).await;
    let look = async |of: &str| {
        reader.clock.advance(REREAD_EVERY_MS);
        let newest = reader.source.reread(Arc::default(), &[topic(of)].into()).await;
        names(&newest.expect("the newest"))
    };
    assert_eq!(look("shop/orders").await, ["a"]);
    fixture.apply(&one("b")).await;
    assert_eq!(look("shop/others").await, [""; 0]);
    assert_eq!(reader.orders().await, Ok(vec!["a".to_owned(), "b".to_owned()]));
}

/// Changes of a topic in random order: additions, replacements, removals, and what it says of itself.
#[tokio::test]
async fn what_is_read_in_parts_is_what_is_read_whole() {
    let fixture = Fixture::in_folder();
    let mut random = StdRng::seed_from_u64(18);
    fixture.apply(&one("first")).await;
    let reader = fixture.reader();
    let catalogue = async |reader: &Reader| reader.topics(&["shop/orders"]).await.expect("a topic");
    catalogue(&reader).await;
    let (mut largest, mut were_missing) = (0, 0);
    for step in 0..40 {
        let mut changes = Changes::default();
        let (fills, empties) = (step % 20 == 0, step % 20 == 19);
        for number in 0..200 {
            // Few, so that most leaves stay as they are.
            if !fills && !empties && random.random_ratio(49, 50) {
                continue;
            }
            let key = format!("orders/s{number:03}");
            // Removed more and more often, until none is left.
            if empties || random.random_ratio(step % 20, 20) {
                changes.remove(key.as_str());
                continue;
            }
            let filler = "x".repeat(random.random_range(0..2_000));
            let url = format!(".example.com/{filler}");
            let text = one(&format!("s{number:03}")).replace(".example.com/", &url);
            changes.put(key.as_str(), value(&text));
        }
        let own = random.random_range(0..6);
        if own == 0 || empties {
            changes.remove("orders/").remove("orders/first");
        } else if own == 1 {
            let described = format!("{}---\n{TOPIC}", one("s000"));
            changes.put("orders/", value(&described));
        }
        // Its neighbours share leaves with it.
        changes.put("a/x", step.to_string()).put("z/x", step.to_string());
        fixture.commit("shop", &changes).await;
        reader.clock.advance(CHECK_EVERY_MS);
        let (in_parts, whole) = (catalogue(&reader).await, catalogue(&fixture.reader()).await);
        assert_eq!(in_parts.topic(&topic("shop/orders")), whole.topic(&topic("shop/orders")));
        assert_eq!(names(&in_parts), names(&whole), "step {step}");
        let of = |all: &Catalogue| all.subscriptions().cloned().collect::<Vec<_>>();
        assert_eq!(of(&in_parts), of(&whole), "step {step}");
        largest = largest.max(names(&whole).len());
        were_missing += u32::from(whole.topic(&topic("shop/orders")).is_none());
    }
    assert!(largest > 150 && were_missing > 0, "{largest} {were_missing}");
}

const TOPIC: &str = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: orders}\n\
                     spec: {maxReplies: 7}\n";
