//! Generated clients send what generated servers read, under the names of the wire.

use crate::defects::d42_enum_case::client::types::Order;
use crate::over_http::{REACHED, Served};
use crate::positive;
use crate::stub::hooks::Hooks;

/// The status of an answer that the document does not name: what a fixture's handler gives.
macro_rules! status {
    ($answer:expr) => {
        match $answer.await {
            Err(progenitor_client::Error::UnexpectedResponse(answer)) => answer.status().as_u16(),
            other => panic!("{other:?}"),
        }
    };
}

/// What did not arrive under its name would be missing, and what is no word of the enumeration refused: 400.
#[tokio::test]
async fn parameters_and_words_of_any_name_are_sent() {
    use positive::client_names::client::{Client, types};
    let served = Served::new(positive::client_names::server::dispatch::description);
    let client = Client::new(&format!("http://{}", served.server.local_addr()), Hooks);
    let build = |send: &str, order| {
        let build = client
            .build()
            .new_path(7)
            .send_path(send)
            .client_query(true)
            .body_query(1);
        build.page_size(2).page_size_header(3).order(order)
    };
    assert_eq!(status!(build("abc", types::Order::Asc2).send()), REACHED.0);
    assert_eq!(
        status!(build("abc", types::Order::Desc).by(types::BuildBy::Id2).send()),
        REACHED.0
    );
    let rebuild = types::Build {
        order: types::Order::Desc2,
        usual: types::Order::Desc2,
        many: vec![types::Order::Asc2],
    };
    assert_eq!(
        serde_json::to_string(&rebuild).unwrap(),
        r#"{"many":["ASC"],"order":"DESC","usual":"DESC"}"#
    );
    assert_eq!(
        status!(client.rebuild().new_path(7).send_path("abc").body(rebuild).send()),
        REACHED.0
    );
}

#[test]
fn words_that_differ_only_in_case_are_words_of_their_own() {
    for (word, value) in [("asc", Order::Asc), ("ASC", Order::Asc2)] {
        assert_eq!(
            (value.to_string().as_str(), word.parse::<Order>().unwrap()),
            (word, value)
        );
        assert_eq!(serde_json::to_value(value).unwrap(), word);
    }
}

#[tokio::test]
async fn each_item_of_a_list_in_a_form_is_sent() {
    use positive::lists::client::{Client, types};
    let served = Served::new(positive::lists::server::dispatch::description);
    let client = Client::new(&format!("http://{}", served.server.local_addr()), Hooks);
    let send = |tags: &[&str]| {
        let tag = tags.iter().map(|tag| tag.parse().unwrap()).collect();
        let name = "a & b".into();
        client.send_form().body(types::SendFormBody { name, tag })
    };
    assert_eq!(status!(send(&["one", "two=2"]).send()), REACHED.0);
    assert_eq!(status!(send(&[]).send()), REACHED.0);
    // At most two.
    assert_eq!(status!(send(&["one", "two", "three"]).send()), 400);
}

#[tokio::test]
async fn parts_are_sent_as_their_caller_writes_them() {
    use positive::parts::client::Client;
    let served = Served::new(positive::parts::server::dispatch::description);
    let client = Client::new(&format!("http://{}", served.server.local_addr()), Hooks);
    let body = "--x\r\nContent-Disposition: form-data; name=\"photo\"\r\n\r\nabc\r\n--x--\r\n";
    let with = |content_type: &str| client.add_photo().content_type(content_type).body(body);
    assert_eq!(status!(with("multipart/form-data; boundary=x").send()), REACHED.0);
    assert_eq!(status!(with("multipart/form-data").send()), 400);
}
