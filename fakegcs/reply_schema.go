package fakegcs

import (
	"maps"
	"slices"
	"strings"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/ops"
)

// schema has the names that a fields parameter may select in a resource: all of
// https://storage.googleapis.com/$discovery/rest?version=v1, even if this server
// never sends them. A nil schema allows every name.
type schema map[string]schema

// names returns the schema of a list of names. inner has the schemas of their
// values.
func names(list string, inner map[string]schema) schema {
	s := schema{}
	for name := range strings.FieldsSeq(list) {
		s[name] = inner[name]
	}
	return s
}

// bucketNames is the schema of a bucket.
var bucketNames = func() schema {
	s := names(strings.Join(slices.Concat(bucketOutput, bucketMissing), " "), nil)
	for _, setting := range bucketSettings {
		s[setting.name] = nil
	}
	return s
}()

// objectNames and notificationNames are the schemas of an object and of a notification.
var (
	objectNames = names("acl bucket cacheControl componentCount contentDisposition contentEncoding contentLanguage contentType contexts crc32c customTime "+
		"customerEncryption etag eventBasedHold generation hardDeleteTime id kind kmsKeyName md5Hash mediaLink metadata metageneration name owner "+
		"restoreToken retention retentionExpirationTime selfLink size softDeleteTime storageClass temporaryHold timeCreated timeDeleted "+
		"timeFinalized timeStorageClassUpdated updated", nil)
	notificationNames = names("custom_attributes etag event_types id kind object_name_prefix payload_format selfLink topic", nil)
)

// schemaOf returns the schema of the reply to q.
func schemaOf(q *request) schema {
	switch q.op {
	case faults.OpBucketPermissions:
		return names("kind permissions", nil)
	case faults.OpNotificationList:
		return names("items kind", map[string]schema{"items": notificationNames})
	case ops.NotificationInsert, ops.NotificationGet:
		return notificationNames
	case faults.OpList:
		return names("items kind nextPageToken prefixes", map[string]schema{"items": objectNames})
	case ops.BucketList:
		return names("items kind nextPageToken unreachable", map[string]schema{"items": bucketNames})
	case ops.BucketInsert, faults.OpBucketGet, ops.BucketPatch:
		return bucketNames
	case faults.OpStart, faults.OpPut, faults.OpFinalize, faults.OpQuery, faults.OpInsert, faults.OpGet, faults.OpPatch, faults.OpCompose, ops.Restore:
		return objectNames
	case ops.Rewrite:
		if len(q.rest) > 0 && q.rest[0] == "copyTo" {
			return objectNames
		}
		return names("done kind objectSize resource rewriteToken totalBytesRewritten", map[string]schema{"resource": objectNames})
	}
	return nil
}

// unknown returns a name in m that s does not have, or "".
func (m fieldMask) unknown(s schema) string {
	if s == nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		inner, known := s[name]
		switch {
		case name == "*":
		case !known:
			return name
		default:
			if bad := m[name].unknown(inner); bad != "" {
				return name + "/" + bad
			}
		}
	}
	return ""
}
