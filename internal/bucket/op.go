package bucket

import "gcsup/session"

// Ops of the exchanges of this package.
const (
	OpList          session.Op = "list"           // a page of the objects in a bucket
	OpRead          session.Op = "read"           // the content of a small object
	OpDelete        session.Op = "delete"         // delete an object
	OpCompose       session.Op = "compose"        // make an object from others
	OpConfig        session.Op = "bucket"         // the configuration of a bucket, or the names of buckets
	OpNotifications session.Op = "notifications"  // the notifications of a bucket
	OpPermissions   session.Op = "permissions"    // the caller's permissions for a bucket, or a managed folder
	OpManagedFolder session.Op = "managed-folder" // whether a managed folder exists
	OpDeleteFolder  session.Op = "folder-delete"  // delete a folder if it is empty
)
