package gcs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/storage"

	"gcsup/session"
	"gcsup/upload"
)

// NewSpec returns the Spec of an upload that makes the object attrs if the conditions hold. A nil
// conditions has none. The Spec shares the metadata and the pointers of attrs. A CRC32C of 0
// counts as not set, because there is no Writer.SendCRC32C.
//
// The error wraps [session.ErrInvalid]. It names every field that is set although an upload
// cannot set it. The official library ignores such fields. Attributes that were read from the
// service have many of them, such as Generation and Owner. CustomerKeySHA256 is one of them,
// because an upload needs the key itself, see Spec.EncryptionKey.
func NewSpec(attrs *storage.ObjectAttrs, conditions *storage.Conditions) (upload.Spec, error) {
	// What is not taken from these copies is refused, which includes a new field of the library.
	var a storage.ObjectAttrs
	var c storage.Conditions
	if attrs != nil {
		a = *attrs
	}
	if conditions != nil {
		c = *conditions
	}
	spec := upload.Spec{
		Bucket: take(&a.Bucket), Object: take(&a.Name),
		ContentType: take(&a.ContentType), ContentEncoding: take(&a.ContentEncoding), ContentDisposition: take(&a.ContentDisposition),
		ContentLanguage: take(&a.ContentLanguage), CacheControl: take(&a.CacheControl), StorageClass: take(&a.StorageClass),
		Metadata: take(&a.Metadata), CustomTime: take(&a.CustomTime), TemporaryHold: take(&a.TemporaryHold), EventBasedHold: take(&a.EventBasedHold),
		Retention: (*session.Retention)(take(&a.Retention)), PredefinedACL: take(&a.PredefinedACL), KMSKeyName: take(&a.KMSKeyName),
		MD5: take(&a.MD5), CRC32C: unlessZero(take(&a.CRC32C)),
		IfGenerationMatch: unlessZero(take(&c.GenerationMatch)), IfGenerationNotMatch: unlessZero(take(&c.GenerationNotMatch)),
		IfMetagenerationMatch: unlessZero(take(&c.MetagenerationMatch)), IfMetagenerationNotMatch: unlessZero(take(&c.MetagenerationNotMatch)),
	}
	a.ACL = slices.Clone(a.ACL)
	for i := range a.ACL {
		rule := &a.ACL[i]
		spec.ACL = append(spec.ACL, session.ACLRule{Entity: string(take(&rule.Entity)), Role: string(take(&rule.Role))})
	}
	var refused []string
	if contexts := take(&a.Contexts); contexts != nil {
		spec.Contexts = &session.ObjectContexts{Custom: map[string]session.ObjectCustomContextPayload{}}
		for key, payload := range contexts.Custom {
			spec.Contexts.Custom[key] = session.ObjectCustomContextPayload{Value: take(&payload.Value)}
			refused = append(refused, fieldsSet("Contexts.Custom", reflect.ValueOf(payload))...)
		}
	}
	if take(&c.DoesNotExist) {
		if spec.IfGenerationMatch != nil {
			return upload.Spec{}, fmt.Errorf("%w: the conditions DoesNotExist and GenerationMatch exclude each other", session.ErrInvalid)
		}
		spec.IfGenerationMatch = new(int64)
	}
	refused = slices.Concat(refused, fieldsSet("", reflect.ValueOf(a)), fieldsSet("Conditions", reflect.ValueOf(c)))
	if len(refused) > 0 {
		slices.Sort(refused)
		return upload.Spec{}, fmt.Errorf("%w: an upload cannot set %s", session.ErrInvalid, strings.Join(slices.Compact(refused), ", "))
	}
	return spec, nil
}

// take returns the value of a field, and clears the field.
func take[T any](field *T) T {
	value := *field
	*field = *new(T)
	return value
}

func unlessZero[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

// fieldsSet returns the names of the fields of v that are set. name is that of v, or "". The fields
// of the elements of a slice have one name.
func fieldsSet(name string, v reflect.Value) (names []string) {
	_, isTime := v.Interface().(time.Time)
	switch {
	case v.Kind() == reflect.Struct && !isTime:
		for field, value := range v.Fields() {
			names = append(names, fieldsSet(strings.TrimPrefix(name+"."+field.Name, "."), value)...)
		}
	case v.Kind() == reflect.Slice:
		for _, element := range v.Seq2() {
			names = append(names, fieldsSet(name, element)...)
		}
	case !v.IsZero():
		names = []string{name}
	}
	return names
}

// ObjectAttrs returns an object in the type of the official library, such as the Object of an
// [upload.Result]. It is equal to what ObjectHandle.Attrs returns, except that a field that o does
// not have is zero, see [session.Object]. It shares the metadata and the pointers of o. It is nil
// if o is.
func ObjectAttrs(o *session.Object) *storage.ObjectAttrs {
	if o == nil {
		return nil
	}
	attrs := &storage.ObjectAttrs{
		Bucket: o.Bucket, Name: o.Name, Generation: o.Generation, Metageneration: o.Metageneration, Etag: o.Etag,
		Size: o.Size, CRC32C: o.CRC32C, MD5: o.MD5, MediaLink: o.MediaLink,
		ContentType: o.ContentType, ContentEncoding: o.ContentEncoding, ContentDisposition: o.ContentDisposition,
		ContentLanguage: o.ContentLanguage, CacheControl: o.CacheControl, StorageClass: o.StorageClass,
		Metadata: o.Metadata, CustomTime: o.CustomTime, ComponentCount: o.ComponentCount,
		Owner: o.Owner, KMSKeyName: o.KMSKeyName, CustomerKeySHA256: o.CustomerKeySHA256,
		TemporaryHold: o.TemporaryHold, EventBasedHold: o.EventBasedHold,
		Retention: (*storage.ObjectRetention)(o.Retention), RetentionExpirationTime: o.RetentionExpirationTime,
		Created: o.Created, Finalized: o.Finalized, Updated: o.Updated, Deleted: o.Deleted,
		SoftDeleteTime: o.SoftDeleteTime, HardDeleteTime: o.HardDeleteTime,
	}
	for _, rule := range o.ACL {
		attrs.ACL = append(attrs.ACL, storage.ACLRule{
			Entity: storage.ACLEntity(rule.Entity), EntityID: rule.EntityID, Role: storage.ACLRole(rule.Role),
			Domain: rule.Domain, Email: rule.Email, ProjectTeam: (*storage.ProjectTeam)(rule.ProjectTeam),
		})
	}
	if o.Contexts != nil {
		attrs.Contexts = &storage.ObjectContexts{Custom: map[string]storage.ObjectCustomContextPayload{}}
		for key, payload := range o.Contexts.Custom {
			attrs.Contexts.Custom[key] = storage.ObjectCustomContextPayload{Value: payload.Value, CreateTime: payload.CreateTime, UpdateTime: payload.UpdateTime}
		}
	}
	return attrs
}
