package fakegcstest

const acls = docs + "json_api/v1/"

// aclCases returns the facts about access control lists.
func aclCases() []Case {
	const (
		reader   = `{"entity":"domain-google.com","role":"READER"}`
		everyone = `{"entity":"allUsers","role":"READER"}`
		entity   = "/domain-google.com"
	)
	on := func(method, path, body string, status int) Step {
		if body == "" {
			return Step{Method: method, Path: path, Status: status}
		}
		return sendJSON(method, path, body, status)
	}
	// life adds an entity, finds it, changes its role to role, and removes it.
	life := func(path, list, kind, role string) []Step {
		return []Step{
			on("GET", path, "", 200).match(text("kind", list), text("kind", kind), text("role", "OWNER")),
			on("GET", path+entity, "", 404).match(reason("notFound")),
			on("POST", path, reader, 200).match(text("kind", kind), text("entity", "domain-google.com"), text("role", "READER"), text("domain", "google.com"), text("etag", ".+")),
			on("GET", path+entity, "", 200).match(text("role", "READER")),
			on("GET", path, "", 200).match(text("entity", "domain-google.com")),
			on("PUT", path+entity, `{"entity":"domain-google.com","role":"`+role+`"}`, 200).match(text("role", role)),
			on("PATCH", path+entity, `{"role":"READER"}`, 200).match(text("role", "READER")),
			on("DELETE", path+entity, "", 204),
			on("GET", path+entity, "", 404),
			on("DELETE", path+entity, "", 404),
			on("POST", path, `{"entity":"domain-google.com","role":"BOSS"}`, 400).match(reason("invalid")),
			on("POST", path, `{"entity":"nobody","role":"READER"}`, 400).match(reason("invalid")),
			on("POST", path, `{"role":"READER"}`, 400).match(reason("required")),
		}
	}
	const (
		fine    = `{"iamConfiguration":{"uniformBucketLevelAccess":{"enabled":false}}}`
		uniform = `{"iamConfiguration":{"uniformBucketLevelAccess":{"enabled":true}}}`
	)
	return []Case{
		{
			Name: "acl-object", Fact: "The entries of an object's access control list are added, changed and removed one by one.", Source: acls + "objectAccessControls", Bucket: fine, Size: 9,
			Steps: append([]Step{insert("", 0, 9)}, life(objectPath+"/acl", "storage#objectAccessControls", "storage#objectAccessControl", "OWNER")...),
		}, {
			Name: "acl-object-metadata", Fact: "A change of an object's access control list is a new metageneration, and shows in its resource.", Source: acls + "objects#resource", Bucket: fine, Size: 9,
			Steps: []Step{
				insert("", 0, 9).match(text("metageneration", "1")), on("POST", objectPath+"/acl", reader, 200).match(text("object", "{name}"), text("bucket", "{bucket}")),
				get("?projection=full", 200).match(text("metageneration", "2"), text("entity", "domain-google.com")), get("", 200).match(absent("acl")),
			},
		}, {
			Name: "acl-object-generation", Fact: "The access control list of an object is that of one generation.", Source: acls + "objectAccessControls/list", Bucket: fine[:len(fine)-1] + `,"versioning":{"enabled":true}}`, Size: 5,
			Steps: []Step{
				insert("", 0, 9).save("g" + generation), insert("", 0, 5), on("POST", objectPath+"/acl?generation={g}", reader, 200).match(text("generation", "{g}")),
				on("GET", objectPath+"/acl"+entity, "", 404), on("GET", objectPath+"/acl"+entity+"?generation={g}", "", 200),
			},
		}, {
			Name: "acl-object-missing", Fact: "An object that isn't there has no access control list.", Source: status, None: true,
			Steps: []Step{on("GET", objectPath+"/acl", "", 404).match(reason("notFound"))},
		}, {
			Name: "acl-bucket", Fact: "The entries of a bucket's access control list are added, changed and removed one by one.", Source: acls + "bucketAccessControls", Bucket: fine, None: true,
			Steps: append(life(bucketPath+"/acl", "storage#bucketAccessControls", "storage#bucketAccessControl", "WRITER"),
				on("POST", bucketPath+"/acl", reader, 200), on("GET", bucketPath+"?projection=full", "", 200).match(text("domain", "google.com")),
				on("GET", bucketPath, "", 200).match(absent("acl"))),
		}, {
			Name: "acl-default", Fact: "A bucket has an access control list for its new objects.", Source: acls + "defaultObjectAccessControls", Bucket: fine, Size: 9,
			Steps: append(life(bucketPath+"/defaultObjectAcl", "storage#objectAccessControls", "storage#objectAccessControl", "OWNER"),
				on("POST", bucketPath+"/defaultObjectAcl", reader, 200), insert("", 0, 9), on("GET", objectPath+"/acl"+entity, "", 200).settle()),
		}, {
			Name: "acl-prevented", Fact: "With public access prevention, no access control list has everyone.", Source: docs + "public-access-prevention", Bucket: fine, Size: 9,
			Steps: []Step{
				insert("", 0, 9), sendJSON("PATCH", bucketPath, `{"iamConfiguration":{"publicAccessPrevention":"maybe"}}`, 400),
				sendJSON("PATCH", bucketPath, `{"iamConfiguration":{"publicAccessPrevention":"enforced"}}`, 200).match(text("publicAccessPrevention", "enforced")),
				on("POST", objectPath+"/acl", everyone, 412), on("POST", bucketPath+"/acl", everyone, 412), on("POST", bucketPath+"/defaultObjectAcl", everyone, 412),
				patch("", `{"acl":[`+everyone+`]}`, 412), sendJSON("PATCH", bucketPath, `{"acl":[`+everyone+`]}`, 412), insert("-b&predefinedAcl=publicRead", 0, 9).status(412),
				sendJSON("PUT", bucketPath+"/iam", `{"bindings":[{"role":"roles/storage.objectViewer","members":["allUsers"]}]}`, 412), on("POST", objectPath+"/acl", reader, 200),
			},
		}, {
			Name: "acl-uniform", Fact: "With uniform bucket-level access there are no access control lists.", Source: docs + "uniform-bucket-level-access", Bucket: uniform, Size: 9,
			Steps: []Step{
				insert("", 0, 9), on("GET", objectPath+"/acl", "", 400).match(reason("invalid"), "uniform bucket-level access"), on("POST", objectPath+"/acl", reader, 400),
				on("GET", bucketPath+"/acl", "", 400).match(reason("invalid"), "uniform bucket-level access"), on("POST", bucketPath+"/defaultObjectAcl", reader, 400),
				sendJSON("PATCH", bucketPath, `{"acl":[`+reader+`]}`, 400).match("uniform bucket-level access"), patch("", `{"acl":[`+reader+`]}`, 400),
			},
		},
	}
}
