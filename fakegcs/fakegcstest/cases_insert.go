package fakegcstest

import "strings"

const uploading = docs + "uploading-objects"

// multipart returns a multipart upload of {object} with the given parts between
// boundaries "xyz".
func multipart(contentType string, status int, parts ...string) Step {
	return Step{
		Method: "POST", Path: "/upload/storage/v1/b/{bucket}/o?uploadType=multipart&name={object}", Header: []string{"Content-Type: " + contentType},
		Body: "--xyz\r\n" + strings.Join(parts, "\r\n--xyz\r\n") + "\r\n--xyz--\r\n", Status: status,
	}
}

const related = "multipart/related; boundary=xyz"

// metadata returns the first part of a multipart upload.
func metadata(object string) string {
	return "Content-Type: application/json; charset=UTF-8\r\n\r\n" + object
}

// media returns its second part: the content's first n bytes.
func media(n int) string { return "Content-Type: text/x-media\r\n\r\n" + small(0, n) }

// insertWith makes {object} with metadata from the content's first 9 bytes.
func insertWith(suffix, object string) Step {
	s := multipart(related, 200, metadata(object), media(9))
	s.Path += suffix
	return s
}

// insertCases returns the facts about uploads in one request.
func insertCases() []Case {
	return []Case{
		{
			Name: "media", Fact: "uploadType=media takes an object in one request.", Source: uploading, Size: q + 1,
			Steps: []Step{insert("", 0, q+1).with("Content-Type: text/x-c").match(text("crc32c", "{crc32c:262145}"), text("md5Hash", "{md5:262145}"), text("contentType", "text/x-c"))},
		}, {
			Name: "media-empty", Fact: "An object may be empty.", Source: uploading, Size: 0,
			Steps: []Step{insert("", 0, 0).match(text("size", "0"), text("crc32c", "AAAAAA=="))},
		}, {
			Name: "media-hash-bad", Fact: "X-Goog-Hash is compared with the bytes of an upload with uploadType=media.", Source: hashes, None: true,
			Steps: []Step{insert("", 0, 9).with("X-Goog-Hash: crc32c=AAAAAA==").status(400)},
		}, {
			Name: "multipart", Fact: "A multipart upload has the metadata in its first part; the content type may come with the second.", Source: uploading, Size: 9,
			Steps: []Step{
				multipart(related, 200, metadata(`{"metadata":{"a":"1"},"cacheControl":"no-store"}`), media(9)).
					match(text("contentType", "text/x-media"), text("a", "1"), text("cacheControl", "no-store"), text("md5Hash", "{md5:9}")),
			},
		}, {
			Name: "multipart-content-type", Fact: "The content type of the media part and that of the metadata must agree.", Source: "https://github.com/googleapis/google-cloud-go/issues/306", Size: 9,
			Steps: []Step{
				multipart(related, 400, metadata(`{"contentType":"text/x-metadata"}`), media(9)).match(reason("invalid"), "does not match Content-Type specified in metadata"), get("", 404),
				multipart(related, 200, metadata(`{"contentType":"text/x-media"}`), media(9)).match(text("contentType", "text/x-media")),
			},
		}, {
			Name: "multipart-name", Fact: "The name may be in the metadata of a multipart upload alone.", Source: docs + "json_api/v1/objects/insert", Size: 9,
			Steps: []Step{func() Step {
				s := multipart(related, 200, metadata(`{"name":"{name}"}`), media(9)).match(text("name", "{name}"))
				s.Path = strings.TrimSuffix(s.Path, "&name={object}")
				return s
			}()},
		}, {
			Name: "multipart-hash-bad", Fact: "The crc32c in the metadata of a multipart upload is a demand.", Source: hashes, None: true,
			Steps: []Step{multipart(related, 400, metadata(`{"crc32c":"AAAAAQ=="}`), media(9))},
		}, {
			Name: "multipart-md5-bad", Fact: "The md5Hash in the metadata of a multipart upload is a demand.", Source: hashes, None: true,
			Steps: []Step{multipart(related, 400, metadata(`{"md5Hash":"{md5:8}"}`), media(9))},
		}, {
			Name: "multipart-hashes-good", Fact: "Hashes in the metadata that are right are accepted.", Source: hashes, Size: 9,
			Steps: []Step{multipart(related, 200, metadata(`{"md5Hash":"{md5:9}","crc32c":"{crc32c:9}"}`), media(9))},
		}, {
			Name: "multipart-trailer", Fact: "A third part of a multipart upload may bring the crc32c after the media.", Source: rust, Size: 9,
			Steps: []Step{multipart(related, 200, metadata(`{}`), media(9), metadata(`{"crc32c":"{crc32c:9}"}`))},
		}, {
			Name: "multipart-trailer-bad", Fact: "The crc32c after the media is a demand.", Source: rust, None: true,
			Steps: []Step{multipart(related, 400, metadata(`{}`), media(9), metadata(`{"crc32c":"{crc32c:8}"}`))},
		}, {
			Name: "multipart-quoted-boundary", Fact: "A multipart boundary in single quotes, as gcloud and gsutil send it, is accepted.", Source: "https://cloud.google.com/sdk/gcloud/reference/storage/cp", Size: 9,
			Steps: []Step{multipart("multipart/related; boundary='xyz'", 200, metadata(`{}`), media(9))},
		}, {
			Name: "multipart-double-quotes", Fact: "A multipart boundary in double quotes is accepted.", Source: "https://www.rfc-editor.org/rfc/rfc2046#section-5.1.1", Size: 9,
			Steps: []Step{multipart(`multipart/related; boundary="xyz"`, 200, metadata(`{}`), media(9))},
		}, {
			Name: "insert-storage-class", Fact: "An object has the storage class that it is given.", Source: docs + "storage-classes", Size: 9,
			Steps: []Step{insertWith("", `{"storageClass":"NEARLINE"}`).match(text("storageClass", "NEARLINE")), get("", 200).match(text("storageClass", "NEARLINE"))},
		}, {
			Name: "insert-no-such-class", Fact: "A storage class that there isn't is 400.", Source: "https://github.com/googleapis/python-storage/issues/879", None: true,
			Steps: []Step{insertWith("", `{"storageClass":"LUKEWARM"}`).status(400).match("(?i)invalid storage class"), get("", 404)},
		}, {
			Name: "insert-wrong-url", Fact: "An upload to the URL of metadata is 400.", Source: "https://github.com/google/google-api-javascript-client/issues/200", None: true,
			Steps: []Step{Step{Method: "POST", Path: "/storage/v1/b/{bucket}/o?uploadType=media&name={object}", To: 9, Status: 400}.match(reason("wrongUrlForUpload"))},
		}, {
			Name: "insert-gzip-in-flight", Fact: "A body with Content-Encoding: gzip was compressed for the way only.", Source: "https://cloud.google.com/sdk/gcloud/reference/storage/cp#--gzip-in-flight", Size: 9,
			Steps: []Step{insert("", 0, 0).body(zipped(small(0, 9))).with("Content-Encoding: gzip", "Content-Type: text/plain").match(text("crc32c", "{crc32c:9}"), text("size", "9"), absent("contentEncoding"))},
		}, {
			Name: "insert-default-class", Fact: "An object that is given no storage class has the default of its bucket.", Source: docs + "storage-classes#default", Bucket: `{"storageClass":"NEARLINE"}`, Size: 9,
			Steps: []Step{insert("", 0, 9).match(text("storageClass", "NEARLINE")), insertWith("-a", `{"storageClass":"STANDARD"}`).match(text("storageClass", "STANDARD"))},
		}, {
			Name: "metadata-limit", Fact: "Custom metadata has at most 8 KiB.", Source: "https://cloud.google.com/storage/quotas#objects", Size: 9,
			Steps: []Step{
				insertWith("", `{"metadata":{"k":"`+strings.Repeat("v", 8000)+`"}}`),
				insertWith("-a", `{"metadata":{"k":"`+strings.Repeat("v", 9000)+`"}}`).status(400),
				get("-a", 404),
			},
		}, {
			Name: "no-such-bucket-insert", Fact: "An object can't be put into a bucket that isn't there.", Source: status, None: true,
			Steps: []Step{{Method: "POST", Path: "/upload/storage/v1/b/no-such-bucket-for-conformance/o?uploadType=media&name=x", To: 9, Status: 404}},
		}, {
			Name: "replace", Fact: "An object is replaced by one of its name: a new generation, of metageneration 1.", Source: docs + "objects#immutability", Size: 9,
			Steps: []Step{
				insert("", 0, 5).save("g" + generation), patch("", `{"contentType":"text/x"}`, 200).match(text("metageneration", "2")),
				insert("", 0, 9).match(text("metageneration", "1"), `!"{g}"`),
			},
		},
	}
}
