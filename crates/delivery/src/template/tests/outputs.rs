use serde_json::json;

use super::super::PathTemplate;
use super::{order, text, values};

#[test]
fn a_header_cannot_be_split() {
    for (template, header) in [
        ("Bearer {{ secret('API_KEY') }}", Ok("Bearer s3cret")),
        ("{{ secret('API_KEY') | tojson }}", Ok("\"s3cret\"")),
        ("{{ event.data.text }}", Ok("Gr%C3%B6%C3%9Fe \"L\"")),
        (" {{ event.data.n }} ", Ok("5")),
        (
            "{{ event.data.lines }}",
            Err("the value contains a control character, such as a line break, which is not \
                 allowed in a header"),
        ),
        (
            "a\nb",
            Err("the value contains a control character, such as a line break, which is not \
                 allowed in a header"),
        ),
        (
            "{{ event.data.list }}",
            Err("the value is a list; only a string, a number, true or false is allowed here"),
        ),
        (
            "{{ event.data.nothing }}",
            Err("the value is null; only a string, a number, true or false is allowed here"),
        ),
    ] {
        let data = order();
        let rendered = text(template).unwrap().render_header(&values(data));
        let rendered = rendered.map_err(|error| error.reason);
        assert_eq!(rendered.as_deref().map_err(String::as_str), header, "{template}");
    }
    let long = values(json!("x".repeat(5_000)));
    let error = text("{{ event.data }}").unwrap().render_header(&long).unwrap_err();
    assert_eq!(error.reason, "the result is longer than 4096 bytes");
}

#[test]
fn a_query_value_is_encoded_as_in_a_form() {
    for (template, query) in [
        ("{{ event.data.text }}", "Gr%C3%B6%C3%9Fe+%22L%22"),
        ("a&b={{ event.data.lines }}", "a%26b%3Da%0D%0Ab%00"),
        ("{{ event.data.yes }}", "true"),
    ] {
        assert_eq!(
            text(template).unwrap().render_query_value(&values(order())).as_deref(),
            Ok(query)
        );
    }
    assert!(text("{{ event.data }}").unwrap().render_query_value(&values(order())).is_err());
}

#[test]
fn a_value_is_one_segment_of_the_path() {
    for (id, path) in [
        ("plain-1._~", "/users/plain-1._~/x"),
        ("a/b", "/users/a%2Fb/x"),
        ("../admin", "/users/..%2Fadmin/x"),
        ("a\\b?c#d%2e", "/users/a%5Cb%3Fc%23d%252e/x"),
        ("größe\r\n\0 ", "/users/gr%C3%B6%C3%9Fe%0D%0A%00%20/x"),
        ("...", "/users/.../x"),
        ("@evil.example:80", "/users/%40evil.example%3A80/x"),
    ] {
        let template =
            PathTemplate::compile("https://a.example:8443/users/{{ event.data }}/x?q=1", "url")
                .unwrap();
        let url = template.render(&values(json!(id))).unwrap();
        assert_eq!(url.as_str(), format!("https://a.example:8443{path}?q=1"), "{id}");
    }
}

#[test]
fn a_value_that_would_change_the_path_is_an_error() {
    let dots = "the value would change the path: a segment cannot be `.` or `..`";
    for (template, value, reason) in [
        ("https://a.example/{{ event.data }}", json!(".."), dots),
        ("https://a.example/{{ event.data }}/x", json!("."), dots),
        ("https://a.example/.{{ event.data }}/x", json!("."), dots),
        ("https://a.example/%2{{ event.data }}/x", json!("e"), dots),
        ("https://a.example/{{ event.data }}%2E/x", json!("."), dots),
        ("https://a.example/{{ event.data }}{{ event.data }}/x", json!("."), dots),
        (
            "https://a.example/x/{{ event.data }}",
            json!(""),
            "the value is empty, but a path segment cannot be empty",
        ),
        (
            "https://a.example/x/{{ event.data }}",
            json!(["a"]),
            "the value is a list; only a string, a number, true or false is allowed here",
        ),
        (
            "https://a.example/x/{{ event.data }}",
            json!(null),
            "the value is null; only a string, a number, true or false is allowed here",
        ),
        (
            "https://a.example/x/{{ event.data }}",
            json!("/".repeat(4_000)),
            "the result is longer than 8192 bytes",
        ),
    ] {
        let template = PathTemplate::compile(template, "url").unwrap();
        assert_eq!(
            template.render(&values(value)).map_err(|error| error.reason),
            Err(reason.to_owned())
        );
    }
}

#[test]
fn only_the_path_of_a_url_has_expressions() {
    let only = "expressions are allowed only in the path of a URL, after `https://host/`";
    for (url, reason) in [
        ("{{ event.id }}", only),
        ("ftp://a.example/{{ event.id }}", only),
        ("ftp://a.example/", "a URL must begin with http:// or https:// and a host"),
        ("http{{ event.id }}://a.example/", only),
        ("https://{{ event.id }}/", only),
        ("https:///{{ event.id }}/x", only),
        ("https://a.example{{ event.id }}/", only),
        ("https://a.example:{{ event.id }}/", only),
        ("https://u:{{ secret('X') }}@a.example/", only),
        ("https://a.example?{{ event.id }}", only),
        ("https://a.example/x?y={{ event.id }}", only),
        ("https://a.example/x#{{ event.id }}", only),
        ("https://a.example/{{ event.id }}?y={{ event.id }}", only),
        (
            "https://a.example\\{{ event.id }}/",
            "a URL cannot contain spaces, control characters or `\\`",
        ),
        (
            "https://a.exa\tmple/{{ event.id }}/",
            "a URL cannot contain spaces, control characters or `\\`",
        ),
        (
            "https://a.example/{{ event.id }}/../x",
            "the path of a URL cannot have the segments `.` and `..`",
        ),
        (
            "https://a.example/%2E%2e/{{ event.id }}",
            "the path of a URL cannot have the segments `.` and `..`",
        ),
        (
            "https://a.example/{% if event.id %}x{% endif %}",
            "a URL can contain expressions, but not `if` or `for`",
        ),
    ] {
        let reason = Err(reason.to_owned());
        assert_eq!(
            PathTemplate::compile(url, "url").map(|_| ()).map_err(|error| error.reason),
            reason,
            "{url}"
        );
    }
}
