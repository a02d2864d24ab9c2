//! The state of a service's database, which tests assert.

use serde_json::Value;

use crate::fixture::TestKey;
use crate::service::Service;

impl Service {
    /// Returns the rows of a query, each as a JSON object.
    pub async fn rows(&self, query: &str) -> Value {
        let aggregated =
            format!("WITH q AS MATERIALIZED ({query}) SELECT coalesce(jsonb_agg(to_jsonb(q)), '[]') FROM q");
        self.db
            .query_one(&aggregated, &[])
            .await
            .unwrap_or_else(|error| panic!("{query}: {error:?}"))
            .get(0)
    }

    /// Returns whether the database has this nonce of this key.
    pub async fn knows_nonce(&self, key: &TestKey, nonce: &str) -> bool {
        let digest =
            "substr(encode(sha256(convert_to($1, 'UTF8') || '\\x00' || convert_to($2, 'UTF8')), 'hex'), 1, 32)::uuid";
        let query = format!("SELECT EXISTS (SELECT FROM used_nonces WHERE digest = {digest})");
        self.db.query_one(&query, &[&key.id, &nonce]).await.unwrap().get(0)
    }

    /// Returns the number of nonces in the database.
    pub async fn used_nonces(&self) -> i64 {
        let query = "SELECT count(DISTINCT digest) FROM used_nonces";
        self.db.query_one(query, &[]).await.unwrap().get(0)
    }

    /// Returns the number of rows of a table, with a condition if one follows its name.
    pub async fn count(&self, from_where: &str) -> i64 {
        let query = format!("SELECT count(*) FROM {from_where}");
        self.db
            .query_one(&query, &[])
            .await
            .unwrap_or_else(|error| panic!("{query}: {error:?}"))
            .get(0)
    }
}
