package fakegcstest

// pythonSystem are the system tests of Google's Python client, which run on the service.
const pythonSystem = "https://github.com/googleapis/python-storage/blob/main/tests/system"

// policyCases returns the facts about IAM policies, locked retention policies, and projects.
func policyCases() []Case {
	const (
		policyPath  = bucketPath + "/iam"
		viewers     = `"bindings":[{"role":"roles/storage.objectViewer","members":["domain:google.com"]}]`
		conditional = `"bindings":[{"role":"roles/storage.objectViewer","members":["domain:google.com"],"condition":{"title":"always","expression":"true"}}]`
		keysPath    = "/storage/v1/projects/{project}/hmacKeys"
		unknownKey  = "/GOOG1EAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	)
	request := func(method, path string, status int) Step { return Step{Method: method, Path: path, Status: status} }
	lock := func(query string, status int) Step {
		return request("POST", bucketPath+"/lockRetentionPolicy"+query, status)
	}
	period := func(seconds string, status int) Step {
		return sendJSON("PATCH", bucketPath, `{"retentionPolicy":{"retentionPeriod":"`+seconds+`"}}`, status)
	}
	return []Case{
		{
			Name: "policy", Fact: "The IAM policy of a bucket is replaced as a whole, and each one has its own etag.", Source: buckets + "/setIamPolicy", Bucket: `{}`, None: true,
			Steps: []Step{
				request("GET", policyPath, 200).match(text("kind", "storage#policy"), text("resourceId", "projects/_/buckets/{bucket}"), field("version", "1"), text("role", `roles/storage\.legacyBucketOwner`)).save(`e="etag":\s*"([^"]+)"`),
				sendJSON("PUT", policyPath, `{"etag":"{e}",`+viewers+`}`, 200).match(text("role", `roles/storage\.objectViewer`), text("etag", ".+"), `!`+text("etag", "{e}")),
				request("GET", policyPath, 200).match("domain:google.com").settle(),
			},
		}, {
			Name: "policy-etag", Fact: "A policy with an etag that is not that of the bucket's is refused.", Source: buckets + "/setIamPolicy", Bucket: `{}`, None: true,
			Steps: []Step{
				request("GET", policyPath, 200).save(`e="etag":\s*"([^"]+)"`), sendJSON("PUT", policyPath, `{`+viewers+`}`, 200),
				sendJSON("PUT", policyPath, `{"etag":"{e}",`+viewers+`}`, 412).match(reason("conditionNotMet")),
			},
		}, {
			Name: "policy-condition", Fact: "A condition in a policy requires uniform bucket-level access, and version 3 of the policy.", Source: pythonSystem, Bucket: `{"iamConfiguration":{"uniformBucketLevelAccess":{"enabled":false}}}`, None: true,
			Steps: []Step{
				sendJSON("PUT", policyPath, `{"version":3,`+conditional+`}`, 412).match("enable uniform bucket-level access"),
				sendJSON("PATCH", bucketPath, `{"iamConfiguration":{"uniformBucketLevelAccess":{"enabled":true}}}`, 200),
				sendJSON("PUT", policyPath, `{"version":1,`+conditional+`}`, 400).match("at least 3"), sendJSON("PUT", policyPath, `{"version":3,`+conditional+`}`, 200).match(field("version", "3")),
			},
		}, {
			Name: "policy-missing", Fact: "A bucket that isn't there has no policy.", Source: status, None: true,
			Steps: []Step{request("GET", "/storage/v1/b/no-such-bucket-for-conformance/iam", 404).match(reason("notFound"))},
		}, {
			Name: "retention-lock", Fact: "A locked retention policy is only extended.", Source: buckets + "/lockRetentionPolicy", Bucket: `{"retentionPolicy":{"retentionPeriod":"1"}}`, None: true,
			Steps: []Step{
				lock("", 400).match(reason("required")), lock("?ifMetagenerationMatch=7", 412), lock("?ifMetagenerationMatch=1", 200).match(field("isLocked", "true"), text("metageneration", "2")),
				sendJSON("PATCH", bucketPath, `{"retentionPolicy":null}`, 403), period("2", 200).match(field("isLocked", "true"), text("retentionPeriod", "2")), period("1", 403),
				request("GET", bucketPath, 200).match(field("isLocked", "true"), text("retentionPeriod", "2")),
			},
		}, {
			Name: "retention-lock-none", Fact: "A bucket without a retention policy has none to lock.", Source: buckets + "/lockRetentionPolicy", Bucket: `{}`, None: true,
			Steps: []Step{lock("?ifMetagenerationMatch=1", 400)},
		}, {
			Name: "project-account", Fact: "A project has a service account.", Source: docs + "json_api/v1/projects/serviceAccount/get", None: true,
			Steps: []Step{request("GET", "/storage/v1/projects/{project}/serviceAccount", 200).match(text("kind", "storage#serviceAccount"), text("email_address", `.+@gs-project-accounts\.iam\.gserviceaccount\.com`))},
		}, {
			Name: "project-keys", Fact: "The HMAC keys of a project are listed; a key needs a service account.", Source: docs + "json_api/v1/projects/hmacKeys", None: true,
			Steps: []Step{
				request("GET", keysPath+"?maxResults=1", 200).match(text("kind", "storage#hmacKeysMetadata")), request("POST", keysPath, 400).match(reason("required")),
				request("GET", keysPath+unknownKey, 404).match(reason("notFound")), request("DELETE", keysPath+unknownKey, 404),
			},
		},
	}
}
