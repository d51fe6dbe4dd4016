package recorded

import "regexp"

// A row accepts differences: those in recordings of the year, at a place that matches at, with
// values that match recorded and answered. An empty pattern matches every value, "^$" an absent one.
type row struct {
	year, at, recorded, answered string
	why                          string
}

func (r row) matches(year string, d difference) bool {
	return r.year == year && matches(r.at, d.At) && matches(r.recorded, d.Recorded) && matches(r.answered, d.Answered)
}

func matches(pattern, s string) bool { return regexp.MustCompile("(?s)" + pattern).MatchString(s) }

// accepted says of each difference that remains why fakegcs is right, or which part of the service it does
// not have.
var accepted = []row{
	// The service has changed since 2019. Recordings of 2026 show what fakegcs answers.
	{"2019", `^header X-Guploader-(Customer|Request-Result|Upload-Result)$`, "", "^$", "no reply of 2026 has these headers"},
	{"2019", `^body error errors (debugInfo|extendedHelp)$`, "", "^$", "no error of 2026 has a trace or a link"},
	{"2019", `^body error (errors )?message$`, "^(Not Found|Precondition Failed|Required)$", "", "since 2026 the text is longer"},
	{"2019", `^header (Cache-Control|Expires|Pragma)$`, "", "", "caches were told otherwise in 2019"},
	{"2019", `^header Content-Type$`, "^application/json", "^text/html", "since 2026 errors of the metadata in a multipart body have the type of HTML"},
	{"2019", `^body error (errors )?message$`, "''", "'", "since 2026 the name of an object has single quotes"},
	{"2019", `timeFinalized$`, "^$", "", "the field is newer"},
	{"2019", `^body locationType$`, "^$", "", "the field is newer"},
	{"2019", `^body iamConfiguration (uniformBucketLevelAccess|publicAccessPrevention)$`, "^$", "", "the field is newer"},
	{"2019", `^body version$`, "^$", "^1$", "policies have versions since conditions exist"},
	{"2019", `^body error (errors )?message$`, "Bucket Policy Only", "uniform bucket-level access", "the feature has another name now"},
	{"2019", `^body error (errors )?(reason|message)$`, "^forbidden$|retention policy", "retentionPolicyNotMet|retention policy", "https://github.com/kmoneil/zig-gcp/blob/main/src/storage/retention.zig has measured the newer reason in 2026"},

	// What fakegcs does not have.
	{"2019", `^header X-Goog-Expiration$`, "", "^$", "fakegcs keeps lifecycle rules and does not apply them"},
	{"2019", `kmsKeyName$|^header X-Goog-Encryption-Kms-Key-Name$`, "cryptoKeyVersions/1$", "", "fakegcs has no keys of Cloud KMS, and so no versions of them"},
	{"2019", `^body bindings members$`, "deklerk-sandbox", ":0$", "fakegcs has one project, 0"},
	{"2019", `^header Etag$`, "", "^$", "replies about access control lists have no entity tag in fakegcs"},
	{"2019", `^body (items )?id$`, "^11$", "^1$", "each server numbers its notifications"},
	{"2019", `^header Content-Type$`, "^application/json$", "^$", "Go's HTTP server sends no type with a 304"},
	{"2019", `^body (eventBasedHold|temporaryHold)$`, "^false$", "^$", "fakegcs does not distinguish a hold that was released from one that was never set"},

	// What the recording does not contain.
	{"2019", `^body items (size|md5Hash|crc32c|cacheControl)$`, "", "", "the bytes of a public object are not in the recording"},
	{"2019", `^header X-Goog-Metageneration$`, "^2$", "^1$", "a public object that was changed before"},
	{"2019", `^body metageneration$`, "^13$", "^10$", "some changes of the bucket were made by another principal, whose requests are left out"},
	{"2019", `^body items$`, "66597705133146", "", "buckets of earlier runs"},
	{"2019", `^body$|^header (Accept-Ranges|Content-Encoding|Content-Length|Etag|Vary)$`, "", "", "an object with the type of gzip was decompressed before it was recorded"},

	// Access control lists.
	{"2019", `^body items selfLink$`, "/acl/user-integration@", "", "fakegcs has one principal, the recording two"},
	{"2019", `^body (acl|owner|defaultObjectAcl)$`, "^$", "", "for some seconds after uniform access was disabled, the service shows no lists"},
	{"2019", `^body (acl|owner entity)$`, "", "^$", "fakegcs shows access control lists only if projection=full asks for them"},
}
