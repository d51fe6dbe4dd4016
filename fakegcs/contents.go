package fakegcs

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// This file has the methods that look at buckets and objects, and change them, without
// a request.

// Bucket describes a bucket to create. Only Name is required. A request to the server
// can set the other fields of the API's resource,
// https://cloud.google.com/storage/docs/json_api/v1/buckets#resource.
type Bucket struct {
	Name           string
	Location       string            // "" means US
	StorageClass   string            // of objects that name none; "" means STANDARD
	Versioning     bool              // keep the older generations of an object
	SoftDelete     time.Duration     // how long a deleted object can be restored, in whole seconds; 0 means not at all
	Retention      time.Duration     // how long an object cannot be deleted, in whole seconds; 0 means not at all
	EventBasedHold bool              // hold new objects
	RequesterPays  bool              // refuse requests that name no project to bill
	UniformAccess  bool              // objects have no access control lists
	Hierarchical   bool              // hierarchical namespace: the bucket has folders, and UniformAccess
	Labels         map[string]string // nil means none
}

// ObjectContent is an object with its bytes.
type ObjectContent struct {
	// Object has Bucket, Name, and any of the fields that an upload can set, such as
	// ContentType and Metadata. The server sets the others.
	Object
	Content []byte
}

// CreateBucket creates a bucket. It fails if the name is invalid or exists, or a field is
// invalid.
func (s *Server) CreateBucket(b Bucket) error {
	if _, err := s.store.createBucket(b.Name, b.fields(), ""); err != nil {
		return fmt.Errorf("fakegcs: bucket %q: %w", b.Name, err)
	}
	return nil
}

// fields returns the fields of the request that creates b.
func (b *Bucket) fields() map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	set := func(given bool, name string, value any) {
		if given {
			fields[name], _ = json.Marshal(value) // a value that can always be marshaled
		}
	}
	set(b.Location != "", "location", b.Location)
	set(b.StorageClass != "", "storageClass", b.StorageClass)
	set(b.Versioning, "versioning", versioning{Enabled: true})
	set(b.SoftDelete != 0, "softDeletePolicy", map[string]int64Text{"retentionDurationSeconds": int64Text(b.SoftDelete / time.Second)})
	set(b.Retention != 0, "retentionPolicy", map[string]int64Text{"retentionPeriod": int64Text(b.Retention / time.Second)})
	set(b.EventBasedHold, "defaultEventBasedHold", true)
	set(b.RequesterPays, "billing", billing{RequesterPays: true})
	set(b.Hierarchical, "hierarchicalNamespace", namespace{Enabled: true})
	set(b.UniformAccess || b.Hierarchical, "iamConfiguration", map[string]uniformAccess{"uniformBucketLevelAccess": {Enabled: true}})
	set(b.Labels != nil, "labels", b.Labels)
	return fields
}

// PutObject makes an object with the bytes of content, as an upload without
// preconditions does, and returns it. Of o it uses Bucket, Name, and the fields that an
// upload can set, such as ContentType and Metadata. The server sets the others.
func (s *Server) PutObject(o Object, content io.Reader) (Object, error) {
	made, err := s.store.put(&o, content)
	if err != nil {
		return Object{}, fmt.Errorf("fakegcs: object %q in bucket %q: %w", o.Name, o.Bucket, err)
	}
	return *made.clone(), nil
}

// put makes an object that no request describes.
func (s *store) put(given *Object, r io.Reader) (*Object, error) {
	o := &Object{
		Bucket: given.Bucket, Name: given.Name, ContentType: given.ContentType, ContentEncoding: given.ContentEncoding,
		ContentDisposition: given.ContentDisposition, ContentLanguage: given.ContentLanguage, CacheControl: given.CacheControl,
		StorageClass: given.StorageClass, Metadata: given.Metadata, Contexts: given.Contexts, ACL: given.ACL,
		TemporaryHold: given.TemporaryHold, EventBasedHold: given.EventBasedHold, Retention: given.Retention,
		CustomTime: given.CustomTime, CustomerEncryption: given.CustomerEncryption, KMSKeyName: given.KMSKeyName,
	}
	o = o.clone() // the maps of the caller stay its own
	class, err := storageClass(o.StorageClass)
	if err != nil {
		return nil, err
	}
	o.StorageClass = class
	if err := o.checkNew("", s.now()); err != nil {
		return nil, err
	}
	if err := s.hasBucket(o.Bucket); err != nil {
		return nil, err
	}
	content := s.newBlob()
	if err := s.fill(content, o, r); err != nil {
		content.Release()
		return nil, err
	}
	made, err := s.publish(o, content, conditions{})
	if err != nil {
		content.Release()
		return nil, err
	}
	return made, nil
}

// Object returns the metadata of the live generation of an object.
func (s *Server) Object(bucket, name string) (Object, bool) {
	o := s.store.live(bucket, name)
	if o == nil {
		return Object{}, false
	}
	return *o.clone(), true
}

// ListObjects returns the live objects whose names begin with prefix, in the order of
// their names. It fails if the bucket does not exist.
func (s *Server) ListObjects(bucket, prefix string) ([]Object, error) {
	found, err := s.store.liveObjects(bucket, prefix)
	if err != nil {
		return nil, fmt.Errorf("fakegcs: bucket %q: %w", bucket, err)
	}
	var list []Object
	for _, o := range found {
		list = append(list, *o.clone())
	}
	return list, nil
}

// ReadObject returns the bytes of the live generation of an object.
func (s *Server) ReadObject(bucket, name string) ([]byte, error) {
	v, refused := s.store.find(bucket, name, 0)
	if refused != nil {
		return nil, refused
	}
	defer v.blob.Release()
	r, err := v.blob.Section(0, v.Size)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content := make([]byte, v.Size)
	_, err = io.ReadFull(r, content)
	return content, err
}

// DeleteObject deletes the live generation of an object, as a request does: in a bucket
// with versioning it becomes noncurrent, and with soft delete it can be restored.
func (s *Server) DeleteObject(bucket, name string) error {
	if err := s.store.deleteObject(bucket, name, 0, conditions{}); err != nil {
		return fmt.Errorf("fakegcs: object %q in bucket %q: %w", name, bucket, err)
	}
	return nil
}
