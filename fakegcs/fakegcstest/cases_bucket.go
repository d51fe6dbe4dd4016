package fakegcstest

const buckets = docs + "json_api/v1/buckets"

// bucketCases returns the facts about buckets.
func bucketCases() []Case {
	bucket := func(method, query string, status int) Step {
		return Step{Method: method, Path: bucketPath + query, Status: status}
	}
	change := func(query, body string, status int) Step {
		return sendJSON("PATCH", bucketPath+query, body, status)
	}
	create := func(body string, status int) Step {
		return sendJSON("POST", "/storage/v1/b?project={project}", body, status)
	}
	return []Case{
		{
			Name: "bucket", Fact: "The resource of a bucket has these fields.", Source: buckets + "#resource", Bucket: `{}`, None: true,
			Steps: []Step{
				bucket("GET", "", 200).match(
					text("kind", "storage#bucket"), text("id", "{bucket}"), text("name", "{bucket}"), text("location", "US"), text("locationType", "multi-region"), text("storageClass", "STANDARD"),
					text("metageneration", "1"), text("etag", ".+"), text("timeCreated", "20.*Z"), text("updated", "20.*Z"), text("projectNumber", `\d+`), text("retentionDurationSeconds", "0"),
				),
				bucket("GET", "?fields=name,location", 200).match(text("name", "{bucket}"), absent("storageClass")),
				{Method: "HEAD", Path: "/{bucket}", Status: 200},
			},
		}, {
			Name: "bucket-twice", Fact: "To create a bucket with a name that is taken is 409.", Source: status, Bucket: `{}`, None: true,
			Steps: []Step{create(`{"name":"{bucket}"}`, 409).match(reason("conflict"))},
		}, {
			Name: "bucket-name", Fact: "A bucket needs a name of lower-case letters, digits, dashes, underscores and dots.", Source: docs + "buckets#naming", None: true,
			Steps: []Step{create(`{"name":"Not_Valid"}`, 400).match(reason("invalid")), create(`{"name":"x"}`, 400), create(`{}`, 400).match(reason("required"))},
		}, {
			Name: "bucket-missing", Fact: "A bucket that isn't there is 404.", Source: status, None: true,
			Steps: []Step{{Method: "GET", Path: "/storage/v1/b/no-such-bucket-for-conformance", Status: 404, Match: []string{reason("notFound")}}},
		}, {
			Name: "bucket-layout", Fact: "A bucket returns its storage layout.", Source: buckets + "/getStorageLayout", None: true,
			Steps: []Step{
				bucket("GET", "/storageLayout", 200).match(text("kind", "storage#storageLayout"), text("bucket", "{bucket}"), text("location", ".+")),
				{Method: "GET", Path: "/storage/v1/b/no-such-bucket-for-conformance/storageLayout", Status: 404},
			},
		}, {
			Name: "bucket-permissions", Fact: "A bucket reports which of the named permissions the caller has.", Source: buckets + "/testIamPermissions", Bucket: `{}`, None: true,
			Steps: []Step{
				bucket("GET", "/iam/testPermissions?permissions=storage.objects.delete&permissions=storage.objects.get", 200).match(text("kind", "storage#testIamPermissionsResponse"), field("permissions", `\[[^]]*"storage\.objects\.delete"`)),
				bucket("GET", "/iam/testPermissions", 400),
				bucket("GET", "/iam/testPermissions?permissions=nonsense", 400).match(reason("invalid")),
				{Method: "GET", Path: "/storage/v1/b/no-such-bucket-for-conformance/iam/testPermissions?permissions=storage.objects.delete", Status: 404},
			},
		}, {
			Name: "bucket-notifications", Fact: "A bucket without notifications lists none.", Source: docs + "json_api/v1/notifications/list", Bucket: `{}`, None: true,
			Steps: []Step{
				bucket("GET", "/notificationConfigs", 200).match(text("kind", "storage#notifications"), absent("items")),
				bucket("GET", "/notificationConfigs/1", 404).match(reason("notFound")),
				sendJSON("POST", bucketPath+"/notificationConfigs", `{"payload_format":"NONE"}`, 400),
			},
		}, {
			Name: "bucket-list", Fact: "The buckets of a project are listed, by prefix.", Source: buckets + "/list", Bucket: `{}`, None: true,
			Steps: []Step{
				{Method: "GET", Path: "/storage/v1/b?project={project}&prefix={bucket}", Status: 200, Match: []string{text("kind", "storage#buckets"), text("name", "{bucket}"), absent("nextPageToken")}},
				{Method: "GET", Path: "/storage/v1/b?project={project}&prefix={bucket}-nothing", Status: 200, Match: []string{absent("items")}},
			},
		}, {
			Name: "bucket-patch", Fact: "A patch changes what it names and nothing else, and is a new metageneration.", Source: buckets + "/patch", Bucket: `{"labels":{"a":"1","b":"2"}}`, None: true,
			Steps: []Step{
				change("", `{"versioning":{"enabled":true},"labels":{"b":null,"c":"3"}}`, 200).match(field("versioning", `\{\s*"enabled":\s*true`), text("a", "1"), absent("b"), text("c", "3"), text("metageneration", "2")),
				change("", `{"storageClass":"NEARLINE","labels":null}`, 200).match(text("storageClass", "NEARLINE"), absent("a"), field("versioning", `\{\s*"enabled":\s*true`), text("metageneration", "3")),
				bucket("GET", "", 200).match(text("storageClass", "NEARLINE"), text("metageneration", "3")),
			},
		}, {
			Name: "bucket-configuration", Fact: "A bucket keeps its lifecycle rules, CORS, website and default hold.", Source: buckets + "#resource", None: true,
			Bucket: `{"lifecycle":{"rule":[{"action":{"type":"Delete"},"condition":{"age":30}}]},"cors":[{"origin":["*"],"method":["GET"],"maxAgeSeconds":60}],"website":{"notFoundPage":"404.html"},"defaultEventBasedHold":true}`,
			Steps: []Step{
				bucket("GET", "", 200).match(field("age", "30"), field("maxAgeSeconds", "60"), text("notFoundPage", "404.html"), field("defaultEventBasedHold", "true")),
				change("", `{"lifecycle":null,"website":{"mainPageSuffix":"index.html"}}`, 200).match(absent("age"), text("mainPageSuffix", "index.html"), text("notFoundPage", "404.html"), field("maxAgeSeconds", "60")),
			},
		}, {
			Name: "bucket-patch-nothing", Fact: "A patch without fields leaves the metageneration alone.", Source: measured + "src/storage/fake_buckets.zig", Bucket: `{}`, None: true,
			Steps: []Step{change("", `{}`, 200).match(text("metageneration", "1"))},
		}, {
			Name: "bucket-preconditions", Fact: "A bucket has preconditions on its metageneration.", Source: precond, Bucket: `{}`, None: true,
			Steps: []Step{
				bucket("GET", "?ifMetagenerationMatch=1", 200), bucket("GET", "?ifMetagenerationMatch=2", 412), bucket("GET", "?ifMetagenerationNotMatch=1", 304),
				change("?ifMetagenerationMatch=2", `{"labels":{"a":"1"}}`, 412).match(reason("conditionNotMet")), change("?ifMetagenerationNotMatch=1", `{"labels":{"a":"1"}}`, 304),
				change("?ifMetagenerationMatch=1", `{"labels":{"a":"1"}}`, 200), bucket("DELETE", "?ifMetagenerationMatch=1", 412), bucket("DELETE", "?ifMetagenerationMatch=2", 204),
			},
		}, {
			Name: "bucket-delete", Fact: "A bucket with objects in it is not deleted; without, it is gone.", Source: buckets + "/delete", Bucket: `{}`, None: true,
			Steps: []Step{
				insert("", 0, 9), bucket("DELETE", "", 409).match(reason("conflict")), del("", 204), bucket("DELETE", "", 204), bucket("GET", "", 404).match(reason("notFound")),
				bucket("DELETE", "", 404), insert("", 0, 9).status(404),
			},
		}, {
			Name: "bucket-delete-versions", Fact: "A bucket with noncurrent generations in it is not deleted.", Source: buckets + "/delete", Bucket: `{"versioning":{"enabled":true}}`, None: true,
			Steps: []Step{insert("", 0, 9), del("", 204), bucket("DELETE", "", 409)},
		}, {
			Name: "bucket-xml", Fact: "The XML API has codes for what is wrong with a bucket.", Source: xmlCodes, Bucket: `{}`, None: true,
			Steps: []Step{
				insert("", 0, 9), {Method: "DELETE", Path: "/{bucket}", Status: 409, Match: []string{code("BucketNotEmpty")}}, del("", 204), {Method: "DELETE", Path: "/{bucket}", Status: 204},
				{Method: "DELETE", Path: "/{bucket}", Status: 404, Match: []string{code("NoSuchBucket")}},
			},
		},
	}
}
