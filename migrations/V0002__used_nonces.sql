-- Used nonces, smaller and written once: a digest in place of key id and nonce, and one row in place of two.
--
-- The bucket is floor(unix time / 900 s) by this database's clock. A nonce is written into the bucket of its use and looked
-- up in the one before; in a bucket's last half minute it is written into the next one, too, so that a use that has begun
-- but is not committed is met by its row there, which the primary key waits for. A nonce is remembered for 900 to 1,800 s.
-- Partitions are made ahead and dropped whole (admission::nonces). WAL-logged: a lost nonce is a replay that works.
--
-- `nonces` stays for binaries of before, which make and drop its partitions themselves; a later migration drops it.
CREATE TABLE used_nonces (
    bucket bigint NOT NULL,
    -- The first 16 bytes of SHA-256 over key id, a zero byte, and nonce.
    digest uuid NOT NULL,
    PRIMARY KEY (bucket, digest)
) PARTITION BY RANGE (bucket);
