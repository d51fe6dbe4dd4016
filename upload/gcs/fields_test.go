package gcs_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
	raw "google.golang.org/api/storage/v1"

	"gcsup/session"
)

// official maps the fields of the official types to ours: fields of session.Spec
// and session.Object, or of the types that these use, separated by a space. A value
// that begins with "-" is the reason why there is none.
var official = map[reflect.Type]map[string]string{
	reflect.TypeFor[storage.ObjectAttrs](): {
		"Bucket":                  "Spec.Bucket Object.Bucket",
		"Name":                    "Spec.Object Object.Name",
		"ContentType":             "Spec.ContentType Object.ContentType",
		"ContentLanguage":         "Spec.ContentLanguage Object.ContentLanguage",
		"CacheControl":            "Spec.CacheControl Object.CacheControl",
		"EventBasedHold":          "Spec.EventBasedHold Object.EventBasedHold",
		"TemporaryHold":           "Spec.TemporaryHold Object.TemporaryHold",
		"RetentionExpirationTime": "Object.RetentionExpirationTime",
		"ACL":                     "Spec.ACL Object.ACL",
		"PredefinedACL":           "Spec.PredefinedACL",
		"Owner":                   "Object.Owner",
		"Size":                    "Object.Size",
		"ContentEncoding":         "Spec.ContentEncoding Object.ContentEncoding",
		"ContentDisposition":      "Spec.ContentDisposition Object.ContentDisposition",
		"MD5":                     "Spec.MD5 Object.MD5",
		"CRC32C":                  "Spec.CRC32C Object.CRC32C",
		"MediaLink":               "Object.MediaLink",
		"Metadata":                "Spec.Metadata Object.Metadata",
		"Generation":              "Object.Generation",
		"Metageneration":          "Object.Metageneration",
		"StorageClass":            "Spec.StorageClass Object.StorageClass",
		"Created":                 "Object.Created",
		"Finalized":               "Object.Finalized",
		"Deleted":                 "Object.Deleted",
		"Updated":                 "Object.Updated",
		"CustomerKeySHA256":       "Spec.EncryptionKey Object.CustomerKeySHA256",
		"KMSKeyName":              "Spec.KMSKeyName Object.KMSKeyName",
		"Prefix":                  "- only in a listing with a delimiter",
		"Etag":                    "Object.Etag",
		"CustomTime":              "Spec.CustomTime Object.CustomTime",
		"ComponentCount":          "Object.ComponentCount",
		"Retention":               "Spec.Retention Object.Retention",
		"SoftDeleteTime":          "Object.SoftDeleteTime",
		"HardDeleteTime":          "Object.HardDeleteTime",
		"Contexts":                "Spec.Contexts Object.Contexts",
	},
	reflect.TypeFor[storage.Conditions](): {
		"GenerationMatch":        "Spec.IfGenerationMatch",
		"GenerationNotMatch":     "Spec.IfGenerationNotMatch",
		"DoesNotExist":           "Spec.IfGenerationMatch",
		"MetagenerationMatch":    "Spec.IfMetagenerationMatch",
		"MetagenerationNotMatch": "Spec.IfMetagenerationNotMatch",
	},
	reflect.TypeFor[storage.Writer](): {
		"ObjectAttrs":           "- has a list of its own",
		"SendCRC32C":            "Spec.CRC32C",
		"DisableAutoChecksum":   "- the checksum is always sent",
		"ChunkSize":             "- upload.Options.ChunkSize",
		"ChunkRetryDeadline":    "- upload.Options.RetryFor",
		"ChunkTransferTimeout":  "- upload.Options.StallTimeout",
		"ForceEmptyContentType": "- the service makes it application/octet-stream, as without Options.DetectContentType",
		"Append":                "- gRPC only",
		"FinalizeOnClose":       "- gRPC only",
		"ProgressFunc":          "- upload.Options.Observer",
		"EnableParallelUpload":  "- gRPC only",
		"ParallelUploadConfig":  "- gRPC only",
		"SendAppendFinalCRC32C": "- gRPC only",
		"AppendFinalCRC32C":     "- gRPC only",
	},
	reflect.TypeFor[storage.ACLRule](): {
		"Entity": "ACLRule.Entity", "EntityID": "ACLRule.EntityID", "Role": "ACLRule.Role",
		"Domain": "ACLRule.Domain", "Email": "ACLRule.Email", "ProjectTeam": "ACLRule.ProjectTeam",
	},
	reflect.TypeFor[storage.ProjectTeam]():     {"ProjectNumber": "ProjectTeam.ProjectNumber", "Team": "ProjectTeam.Team"},
	reflect.TypeFor[storage.ObjectRetention](): {"Mode": "Retention.Mode", "RetainUntil": "Retention.RetainUntil"},
	reflect.TypeFor[storage.ObjectContexts]():  {"Custom": "ObjectContexts.Custom"},
	reflect.TypeFor[storage.ObjectCustomContextPayload](): {
		"Value":      "ObjectCustomContextPayload.Value",
		"Delete":     "- an upload makes a new object, which has no context to delete",
		"CreateTime": "ObjectCustomContextPayload.CreateTime",
		"UpdateTime": "ObjectCustomContextPayload.UpdateTime",
	},
	// The fields that the service returns, some of which the official library drops.
	reflect.TypeFor[raw.Object](): {
		"Acl": "Object.ACL", "Bucket": "Object.Bucket", "CacheControl": "Object.CacheControl", "ComponentCount": "Object.ComponentCount",
		"ContentDisposition": "Object.ContentDisposition", "ContentEncoding": "Object.ContentEncoding Object.Gzip", "ContentLanguage": "Object.ContentLanguage",
		"ContentType": "Object.ContentType", "Contexts": "Object.Contexts", "Crc32c": "Object.CRC32C", "CustomTime": "Object.CustomTime",
		"CustomerEncryption": "Object.CustomerKeySHA256", "Etag": "Object.Etag", "EventBasedHold": "Object.EventBasedHold",
		"Generation": "Object.Generation", "HardDeleteTime": "Object.HardDeleteTime", "KmsKeyName": "Object.KMSKeyName", "Md5Hash": "Object.MD5",
		"MediaLink": "Object.MediaLink", "Metadata": "Object.Metadata Object.FileModTime Object.UncompressedSize", "Metageneration": "Object.Metageneration",
		"Name": "Object.Name", "Owner": "Object.Owner", "RestoreToken": "Object.RestoreToken", "Retention": "Object.Retention",
		"RetentionExpirationTime": "Object.RetentionExpirationTime", "SelfLink": "Object.SelfLink", "Size": "Object.Size",
		"SoftDeleteTime": "Object.SoftDeleteTime", "StorageClass": "Object.StorageClass", "TemporaryHold": "Object.TemporaryHold",
		"TimeCreated": "Object.Created", "TimeDeleted": "Object.Deleted", "TimeFinalized": "Object.Finalized",
		"TimeStorageClassUpdated": "Object.StorageClassUpdated", "Updated": "Object.Updated",
		"Id":             "- bucket, name and generation again",
		"Kind":           "- always storage#object",
		"ServerResponse": "- of the Go library", "ForceSendFields": "- of the Go library", "NullFields": "- of the Go library",
	},
}

// ours are the types that official names.
var ours = []reflect.Type{
	reflect.TypeFor[session.Spec](), reflect.TypeFor[session.Object](), reflect.TypeFor[session.ACLRule](), reflect.TypeFor[session.ProjectTeam](),
	reflect.TypeFor[session.Retention](), reflect.TypeFor[session.ObjectContexts](), reflect.TypeFor[session.ObjectCustomContextPayload](),
}

// own are the fields of ours that the official types do not have.
var own = map[string]string{
	"Spec.UserProject":        "BucketHandle.UserProject",
	"Spec.NoClobber":          "for resumed uploads",
	"Spec.DefaultContentType": "for resumed uploads",
	"Spec.Gzip":               "compressed by package upload",
	"Object.HasCRC32C":        "0 is a valid CRC32C",
}

// TestOfficialFields checks that each exported field of the official types is one of
// ours, or has a reason why it is not. A later version of the library with another
// field fails this test.
func TestOfficialFields(t *testing.T) {
	used := map[string]bool{}
	for typ, table := range official {
		for i := range typ.NumField() {
			field := typ.Field(i)
			if !field.IsExported() {
				continue
			}
			entry, ok := table[field.Name]
			if !ok {
				t.Errorf("%v has a field %s that is not in the table", typ, field.Name)
			}
			if reason, none := strings.CutPrefix(entry, "-"); none {
				if strings.TrimSpace(reason) == "" {
					t.Errorf("%v.%s has no reason", typ, field.Name)
				}
				continue
			}
			for name := range strings.FieldsSeq(entry) {
				used[name] = true
			}
		}
		for name := range table {
			if _, ok := typ.FieldByName(name); !ok {
				t.Errorf("%v has no field %s", typ, name)
			}
		}
	}
	exists := map[string]bool{}
	for _, typ := range ours {
		for i := range typ.NumField() {
			name := typ.Name() + "." + typ.Field(i).Name
			exists[name] = true
			if !used[name] && own[name] == "" {
				t.Errorf("session.%s is in no table", name)
			}
		}
	}
	for name := range used {
		if !exists[name] {
			t.Errorf("there is no session.%s", name)
		}
	}
}

// TestAssignments checks that the fields which a program sets on a storage.Writer can
// be set on a Spec by the same name, and with the same type except for those that the
// documentation of Spec names.
func TestAssignments(t *testing.T) {
	differ := []string{"ACL", "CRC32C", "Contexts", "Retention"}
	spec, attrs := reflect.TypeFor[session.Spec](), reflect.TypeFor[storage.ObjectAttrs]()
	for name, entry := range official[attrs] {
		if !strings.Contains(entry, "Spec.") || name == "Bucket" || name == "Name" || name == "CustomerKeySHA256" {
			continue // of the handle
		}
		theirs, _ := attrs.FieldByName(name)
		field, ok := spec.FieldByName(name)
		if !ok {
			t.Errorf("Spec has no field %s", name)
		} else if same := field.Type == theirs.Type; same == slices.Contains(differ, name) {
			t.Errorf("Spec.%s is %v, storage.ObjectAttrs has %v", name, field.Type, theirs.Type)
		}
	}
}
