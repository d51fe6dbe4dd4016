package fakegcstest

import (
	"bytes"
	"compress/gzip"
	"regexp"
)

const transcoding = docs + "transcoding"

func quoted(s string) string { return regexp.QuoteMeta(s) }

// zipped compresses text with gzip.
func zipped(text string) string {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write([]byte(text)) // a Buffer takes everything
	_ = w.Close()
	return buf.String()
}

// readCases returns the facts about the bytes of objects.
func readCases() []Case {
	const plainText = "a text that was compressed, a text that was compressed"
	gz := zipped(plainText)
	insertGzip := insert("-z&contentEncoding=gzip", 0, 0).body(gz).with("Content-Type: text/plain").match(text("contentEncoding", "gzip"))
	whole := []string{"X-Goog-Hash: crc32c={crc32c:9}", "X-Goog-Hash: md5={md5:9}", "X-Goog-Generation: {g}", "X-Goog-Metageneration: 1", "X-Goog-Stored-Content-Length: 9", "X-Goog-Stored-Content-Encoding: identity", "Content-Length: 9", "Content-Type: text/x"}
	return []Case{
		{
			Name: "read", Fact: "The bytes of an object come with its type, generation, length and hashes.", Source: docs + "xml-api/reference-headers", Size: 9,
			Steps: []Step{
				insert("", 0, 9).with("Content-Type: text/x").save("g" + generation),
				read("?alt=media", small(0, 9)).has(whole...), read("?alt=media&generation={g}", small(0, 9)), get("?alt=media&generation=1", 404),
				Step{Method: "GET", Path: "/download" + objectPath + "?alt=media", Status: 200}.text(small(0, 9)).has(whole...),
			},
		}, {
			Name: "read-missing", Fact: "A read that fails is answered with the bare message.", Source: "https://github.com/googleapis/java-storage/issues/49", None: true,
			Steps: []Step{get("?alt=media", 404).match(`^No such object: {bucket}/{name}\s*$`)},
		}, {
			Name: "read-range", Fact: "A range gives a part; one after the end is 416.", Source: docs + "json_api/v1/parameters#range", Size: 9,
			Steps: []Step{
				insert("", 0, 9),
				get("?alt=media", 206).with("Range: bytes=2-4").text(small(2, 5)).has("Content-Range: bytes 2-4/9", "Content-Length: 3"),
				get("?alt=media", 206).with("Range: bytes=8-").text(small(8, 9)).has("Content-Range: bytes 8-8/9"),
				get("?alt=media", 206).with("Range: bytes=-3").text(small(6, 9)).has("Content-Range: bytes 6-8/9"),
				get("?alt=media", 206).with("Range: bytes=5-99").text(small(5, 9)).has("Content-Range: bytes 5-8/9"),
				get("?alt=media", 416).with("Range: bytes=9-"),
			},
		}, {
			Name: "read-etag", Fact: "A read can depend on the entity tag of the object: 412 or 304.", Source: docs + "request-preconditions#http", Size: 9,
			Steps: []Step{
				insert("", 0, 9).save(`e="etag":\s*"([^"]+)"`),
				get("", 412).with("If-Match: other").match(reason("conditionNotMet")), get("", 200).with("If-Match: {e}"), get("", 304).with("If-None-Match: {e}"), get("", 200).with("If-None-Match: other"),
				get("?alt=media", 412).with("If-Match: other"), get("?alt=media", 304).with("If-None-Match: {e}"), read("?alt=media", small(0, 9)).with("If-Match: {e}"),
			},
		}, {
			Name: "gzip-as-stored", Fact: "Who accepts gzip gets an object with Content-Encoding gzip as it is stored.", Source: transcoding, None: true,
			Steps: []Step{
				insertGzip,
				read("-z?alt=media", gz).with("Accept-Encoding: gzip").has("Content-Encoding: gzip", "X-Goog-Stored-Content-Encoding: gzip"),
				get("-z?alt=media", 206).with("Accept-Encoding: gzip", "Range: bytes=3-7").text(gz[3:8]),
			},
		}, {
			Name: "gzip-transcoded", Fact: "Who doesn't accept gzip gets such an object decompressed, and a range is ignored.", Source: transcoding, None: true,
			Steps: []Step{
				insertGzip,
				read("-z?alt=media", plainText).with("Accept-Encoding: identity").has("!Content-Encoding", "X-Goog-Stored-Content-Encoding: gzip"),
				read("-z?alt=media", plainText).with("Accept-Encoding: identity", "Range: bytes=3-7"),
			},
		}, {
			Name: "gzip-no-transform", Fact: "With Cache-Control no-transform, an object with Content-Encoding gzip is never decompressed.", Source: transcoding, None: true,
			Steps: []Step{insertGzip, patch("-z", `{"cacheControl":"no-transform"}`, 200), read("-z?alt=media", gz).with("Accept-Encoding: identity")},
		}, {
			Name: "gzip-not", Fact: "An object with Content-Encoding gzip that is not gzip cannot be decompressed: 400.", Source: measured + "docs/storage/checksums-and-compression.md", None: true,
			Steps: []Step{insert("-z&contentEncoding=gzip", 0, 9), get("-z?alt=media", 400).with("Accept-Encoding: identity")},
		},
	}
}
