//! Dead letters in the console over HTTP: accepted requests, displayed dead letters, and replays.

use std::time::Duration;

use crate::console_server::{ConsoleServer, hidden, status_and_text};
use crate::sample_letters::{DUPLICATE, LETTERS, Sample, TestContainer, lines, sample, text};
use adapters::machine::Machine;
use delivery::ports::Clock as _;
use local::aws::{LocalAws, LocalAwsConfig, local_clients};

/// A limit above the duration of any of these tests.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The sample dead letters, one of them in two blobs.
fn samples() -> TestContainer {
    let container = TestContainer::folder();
    container.write(&LETTERS.map(Sample::blob));
    container.write(&[DUPLICATE.blob()]);
    container
}

/// Returns the ids that a page lists, in its order.
fn listed(page: &str) -> Vec<String> {
    let table = page.split("id=\"letters\"").nth(1).unwrap_or_default();
    table.split("class=\"id\" href=\"/letters/").skip(1).map(|rest| rest[..36].to_owned()).collect()
}

#[tokio::test]
async fn the_page_shows_the_dead_letters_that_the_verbs_show() {
    let container = samples();
    let server = ConsoleServer::start(&container, &[]);
    for filter in [
        &[][..],
        &["subscription=mail"],
        &["status=5xx", "topic=shop/orders"],
        &["outcome=TimedOut,NotFound"],
        &["reason=UndeliverableDueToHttpNotFound"],
        &["type=order.p*"],
        &["id=order-2", "id=order-5"],
        &["destination=https://mail.*", "namespace=shop"],
        &["source=*/checkout", "since=2026-11-20", "until=2026-11-20T10:00:00Z"],
        &["search=NO SUCH order"],
        &["search=billing", "status=503"],
        &["search=orders/mail"],
        &["subscription=nobody"],
    ] {
        let options: Vec<String> = filter.iter().map(|pair| format!("--{pair}")).collect();
        let mut verb = vec!["list", "--output", "ndjson"];
        verb.extend(options.iter().map(String::as_str));
        let found: Vec<String> = lines(&container.run(&verb))
            .iter()
            .map(|line| text(line["id"].as_str().unwrap_or_default().as_bytes()))
            .collect();
        let page = server.page(&format!("/letters?{}", filter.join("&"))).await;
        assert_eq!(listed(&page), found, "{filter:?}");
        let count = if found.len() == 1 {
            "1 dead letter".to_owned()
        } else {
            format!("{} dead letters", found.len())
        };
        assert!(page.contains(&count), "{filter:?}");
    }
    let second = server.page("/letters?limit=2&page=2").await;
    assert_eq!(listed(&second).len(), 2);
    assert!(second.contains("3–4 of 5"), "{second}");
}

#[tokio::test]
async fn only_its_own_host_name_is_answered_and_nothing_can_run_be_cached_or_framed() {
    let container = samples();
    let server = ConsoleServer::start(&container, &[]);
    for host in ["rebound.example.com", "rebound.example.com:9181", "10.1.2.3"] {
        let response = server.get("/").header("host", host).send().await.expect("an answer");
        let (status, said) = status_and_text(response).await;
        assert_eq!(status, 421, "{host}");
        assert!(!said.contains("order-1"), "{host}");
    }
    let port = server.url.rsplit(':').next().unwrap_or_default();
    let named = server
        .get("/")
        .header("host", format!("localhost:{port}"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(named.status(), 200);
    for path in [
        "/",
        "/jobs",
        "/nothing",
        "/letters?status=abc",
        "/destinations",
        "/style.css",
        "/letters/00000000-0000-0000-0000-000000000001/raw",
    ] {
        let response = server.get(path).send().await.expect("an answer");
        let header = |name: &str| response.headers()[name].to_str().expect("text").to_owned();
        let policy = header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{path}: {policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'self'"),
            "{path}: {policy}"
        );
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("referrer-policy"), "same-origin", "{path}");
        assert_eq!(header("cache-control"), "no-store", "{path}");
    }
}

#[tokio::test]
async fn nothing_is_sent_without_the_token_of_this_start_or_from_another_site() {
    let container = samples();
    let server = ConsoleServer::start(&container, &[]);
    let token = server.token().await;
    let invalid = token.replace(|c: char| c.is_ascii_digit(), "a");
    for path in ["/replay", "/jobs/some/resume"] {
        for form in [
            &[("note", "some")][..],
            &[("note", "some"), ("token", "")],
            &[("note", "some"), ("token", &invalid)],
        ] {
            let (status, said) =
                status_and_text(server.post(path, form).send().await.expect("an answer")).await;
            assert_eq!(status, 403, "{path} {form:?}");
            assert!(said.contains("Nothing was changed"), "{said}");
        }
        let right = [("note", "some"), ("token", token.as_str())];
        for (name, value) in [
            ("origin", "https://evil.example.com"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
        ] {
            let post = server.post(path, &right).header(name, value);
            assert_eq!(
                post.send().await.expect("an answer").status(),
                403,
                "{path} {name}: {value}"
            );
        }
    }
    assert_eq!(server.get("/jobs/some/resume").send().await.expect("an answer").status(), 405);
    assert!(!container.path().join("_replays").exists());
}

/// Returns the number of storage requests that a page shows.
fn requests(page: &str) -> u64 {
    let status_and_text =
        page.split(" storage requests so far").next().and_then(|before| before.rsplit('>').next());
    status_and_text
        .and_then(|status_and_text| status_and_text.replace(',', "").parse().ok())
        .expect("a number")
}

#[tokio::test]
async fn another_site_causes_no_reads_and_an_unknown_id_does_not_read_the_container() {
    let container = samples();
    let server = ConsoleServer::start(&container, &[]);
    for (site, status) in [
        ("cross-site", 403),
        ("same-site", 403),
        ("elsewhere", 403),
        ("none", 200),
        ("same-origin", 200),
    ] {
        let asked =
            server.get("/jobs").header("sec-fetch-site", site).send().await.expect("an answer");
        assert_eq!(asked.status(), status, "{site}");
    }
    let refused =
        server.get("/letters/nothing").header("sec-fetch-site", "cross-site").send().await;
    let (status, page) = status_and_text(refused.expect("an answer")).await;
    let jobs = requests(&page);
    assert!(status == 403 && page.contains("Another site requested this page"), "{page}");
    let again =
        server.get("/").header("sec-fetch-site", "cross-site").send().await.expect("an answer");
    assert_eq!(requests(&status_and_text(again).await.1), jobs);
    let first = requests(&server.page("/").await);
    for unknown in
        ["nothing", "order-1", "00000000-0000-0000-0000-00000000abcd", "ffffffff", "..%2fx.json"]
    {
        let (status, page) = server.status_and_text(&format!("/letters/{unknown}")).await;
        assert_eq!((status, requests(&page)), (404, first), "{unknown}");
    }
}

#[tokio::test]
async fn nothing_of_an_event_is_markup_and_invisible_characters_are_shown() {
    let container = TestContainer::folder();
    let letter = Sample {
        kind: "<script>alert(1)</script>",
        ..sample(1, (20, 9), "<b onclick=x>no</b>\u{1b}[2J\u{202e}")
    };
    let (key, blob) = letter.blob();
    container.write(&[(key, blob.replace("order-1", "<img src=x onerror=alert(2)>&\\u0007"))]);
    let server = ConsoleServer::start(&container, &[]);
    for path in [
        "/".to_owned(),
        "/letters".to_owned(),
        format!("/letters/{}", letter.id()),
        format!("/replay?id={}", letter.id()),
    ] {
        let page = server.page(&path).await;
        for markup in ["<script>", "<img", "<b onclick", "\u{1b}", "\u{7}", "\u{202e}"] {
            assert!(!page.contains(markup), "{path} has {markup:?}");
        }
    }
    let page = server.page(&format!("/letters/{}", letter.id())).await;
    for shown in [
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "&lt;img src=x onerror=alert(2)&gt;&amp;<span class=\"sign\">U+0007</span>",
        "no&lt;/b&gt;<span class=\"sign\">U+001B</span>[2J<span class=\"sign\">U+202E</span>",
    ] {
        assert!(page.contains(shown), "{shown} in {page}");
    }
    let filtered = server.page("/letters?source=%3Cscript%3E").await;
    assert!(!filtered.contains("<script>") && filtered.contains("&lt;script&gt;"));
    let raw = server.get(&format!("/letters/{}/raw", letter.id())).send().await.expect("an answer");
    assert_eq!(raw.headers()["content-type"], "text/plain; charset=utf-8");
}

#[tokio::test]
async fn an_invalid_value_names_its_field_and_an_empty_result_says_so() {
    let container = samples();
    let server = ConsoleServer::start(&container, &[]);
    for (path, status, said) in [
        ("/letters?status=abc", 400, "503, or 5xx"),
        ("/letters?since=yesterday", 400, "2026-11-20T07:00:00Z"),
        ("/letters?colour=red", 400, "this filter does not exist"),
        ("/replay?outcome=Sad", 400, "TimedOut"),
        ("/replay?to=topic&to_topic=x", 400, "is not a topic"),
        ("/replay?to=url&to_url=ftp://a", 400, "is not supported"),
        ("/replay?to=url&to_url=localhost:80/x", 400, "the URL has no scheme"),
        ("/replay?rate=fast", 400, "50/s"),
        ("/letters?subscription=nobody", 200, "No dead letters match"),
        ("/letters/00000000-0000-0000-0000-00000000abcd", 404, "No such dead letter"),
        ("/letters/00000000", 409, "several dead letters match"),
        ("/letters/..%2f..%2fx.json", 404, "No such dead letter"),
        ("/letters/..%2f..%2fx.json/raw", 404, "No such dead letter"),
        ("/jobs/none", 404, "there is no job none"),
        ("/jobs/a%20b", 404, "is not a valid job name"),
        ("/letters/%ff", 400, "Invalid request"),
        ("/subscriptions/shop/orders/crm", 404, "Subscriptions are not available"),
        ("/elsewhere", 404, "No such page"),
    ] {
        let (code, page) = server.status_and_text(path).await;
        assert_eq!(code, status, "{path}");
        assert!(page.contains(said), "{path}: {page}");
    }
    let (token, invalid) = (server.token().await, "/jobs/..%2f..%2fx/resume");
    let resume = server.post(invalid, &[("token", token.as_str()), ("rate", "fast")]);
    let (code, page) = status_and_text(resume.send().await.expect("an answer")).await;
    assert!(code == 404 && page.contains("is not a valid job name"), "{page}");
    let form = server.status_and_text("/letters?status=abc&type=order.*").await.1;
    assert!(
        form.contains("value=\"abc\"")
            && form.contains("value=\"order.*\"")
            && form.contains("aria-invalid")
    );
    let empty = TestContainer::folder();
    assert!(
        ConsoleServer::start(&empty, &[])
            .page("/letters")
            .await
            .contains("There are no dead letters")
    );
}

/// Reloads the page of a job until the job has ended, and returns the page.
async fn ended(server: &ConsoleServer, path: &str) -> String {
    let begun_ms = Machine.now_ms();
    loop {
        let page = server.page(path).await;
        if !page.contains("data-refresh-ms") {
            return page;
        }
        assert!(Machine.now_ms() - begun_ms < TEST_TIMEOUT.as_millis() as u64, "{page}");
        Machine.sleep(20).await;
    }
}

/// Receives all messages of a queue and returns their number.
async fn received(aws: &LocalAws, url: &str) -> usize {
    let sqs = aws_sdk_sqs::Client::new(&local_clients(&aws.endpoint()));
    let mut count = 0;
    loop {
        let receive = sqs.receive_message().queue_url(url).max_number_of_messages(10);
        match receive.send().await.expect("the queue answers").messages {
            Some(messages) if !messages.is_empty() => count += messages.len(),
            Some(_) | None => return count,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_is_counted_first_then_sent_recorded_and_resumed() {
    let (container, data) = (samples(), tempfile::tempdir().expect("a folder can be made"));
    container.write(&[Sample { subscription: "_malformed", ..sample(9, (20, 9), "") }.blob()]);
    let aws = LocalAws::start(LocalAwsConfig::of_lastmile(0, data.path().to_path_buf(), 600)).await;
    let aws = aws.expect("the local AWS starts");
    let queue = aws.queue_url("retry");
    let server = ConsoleServer::start(&container, &["--queue-url", &queue]);
    let malformed = server.page("/?subscription=_malformed").await;
    assert!(malformed.contains("send: the dead letters have no subscription"), "{malformed}");
    let dry = server.page("/replay?status=503").await;
    assert!(
        dry.contains("3 dead letters to send") && dry.contains("1 dead letter of shop/"),
        "{dry}"
    );
    let (token, shown) = (hidden(&dry, "token"), hidden(&dry, "fingerprint"));
    let form = |shown| {
        [
            ("status", "503"),
            ("to", "subscription"),
            ("fingerprint", shown),
            ("job", "twice"),
            ("token", token.as_str()),
        ]
    };
    // The fingerprint is that of as many dead letters, but one of them differs.
    let others = server.fingerprint("/replay?id=order-1&id=order-2&id=order-5").await;
    let refused = server.post("/replay", &form(&others)).send().await.expect("an answer");
    let (status, said) = status_and_text(refused).await;
    assert_eq!(status, 409);
    assert!(said.contains("The selection has changed to 3 dead letters"), "{said}");
    assert_eq!(received(&aws, &queue).await, 0);

    // A double click on the button sends once.
    let post = || server.post("/replay", &form(&shown)).send();
    let (begun, again) = tokio::join!(post(), post());
    let (begun, again) = (begun.expect("an answer"), again.expect("an answer"));
    assert_eq!((begun.status().as_u16(), again.status().as_u16()), (303, 303));
    assert_eq!(begun.headers()["location"], again.headers()["location"]);
    let job = begun.headers()["location"].to_str().expect("text").to_owned();
    let page = ended(&server, &job).await;
    assert!(page.contains("<dt>sent</dt><dd>3</dd>") && page.contains(">done<"), "{page}");
    assert_eq!(received(&aws, &queue).await, 3);
    let ledger = container.path().join("_replays").join(job.rsplit('/').next().unwrap_or_default());
    assert!(ledger.join("plan.ndjson").exists() && ledger.join("done.ndjson").exists());
    assert!(server.page("/jobs").await.contains(&job));
    assert!(server.page(&format!("/letters/{}", LETTERS[3].id())).await.contains(&job));
    let replay = server.page("/replay?status=503").await;
    assert!(replay.contains("Omitted: 3 dead letters in another state"), "{replay}");
    let again = server.page("/replay?status=503&state=all").await;
    assert!(again.contains("3 of them were already replayed"), "{again}");

    // The ledger looks as if the job had been killed between sending and writing it.
    let chunk = std::fs::read_to_string(ledger.join("1.ndjson")).expect("a chunk");
    std::fs::write(ledger.join("1.ndjson"), chunk.replacen("\"sent\"", "\"intent\"", 2))
        .expect("it can be written");
    std::fs::remove_file(ledger.join("done.ndjson")).expect("the end can be removed");
    let page = server.page(&job).await;
    assert!(
        page.contains("2 dead letters may have been sent") && page.contains("interrupted"),
        "{page}"
    );
    let resumed = server
        .post(&format!("{job}/resume"), &[("token", token.as_str())])
        .send()
        .await
        .expect("an answer");
    assert_eq!(resumed.status(), 303);
    assert!(ended(&server, &job).await.contains("<dt>sent</dt><dd>3</dd>"));
    assert_eq!(received(&aws, &queue).await, 2);
    let (well, said) = server.interrupt();
    assert!(well, "{said}");
    aws.stop().await;
}

#[tokio::test]
async fn the_error_for_a_missing_queue_says_what_to_start_and_leaves_no_ledger() {
    let container = samples();
    let server =
        ConsoleServer::start(&container, &["--queue-url", "http://127.0.0.1:1/000000000000/retry"]);
    let page = server.page("/replay?id=order-5").await;
    assert!(page.contains(" --queue-url http://127.0.0.1:1/000000000000/retry"), "{page}");
    let (token, shown) = (hidden(&page, "token"), hidden(&page, "fingerprint"));
    let form = [("id", "order-5"), ("fingerprint", &shown), ("token", &token)];
    let (status, said) =
        status_and_text(server.post("/replay", &form).send().await.expect("an answer")).await;
    assert_eq!(status, 502);
    assert!(
        said.contains("no program listens on http://127.0.0.1:1: start <code>lastmile dev"),
        "{said}"
    );
    assert!(!container.path().join("_replays").exists());
}

#[tokio::test]
async fn new_dead_letters_are_shown_when_the_container_is_read_again() {
    let container = TestContainer::folder();
    container.write(&[LETTERS[0].blob()]);
    let server = ConsoleServer::start(&container, &[]);
    assert_eq!(listed(&server.page("/letters").await).len(), 1);
    container.write(&[LETTERS[4].blob()]);
    assert_eq!(
        server.get("/letters?read=again&topic=orders").send().await.expect("an answer").headers()["location"],
        "/letters?topic=orders"
    );
    assert_eq!(listed(&server.page("/letters").await).len(), 2);
    let (well, said) = server.interrupt();
    assert!(well, "{said}");
}
