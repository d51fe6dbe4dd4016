// One operation of Node's Cloud Storage client on the emulator; see node.sh.
'use strict';
const assert = require('node:assert');
const {Storage} = require('@google-cloud/storage');

const [, , operation, bucketName, ...args] = process.argv;
const bucket = new Storage({projectId: 'p'}).bucket(bucketName);

const operations = {
  create: () => bucket.create(),
  upload: (file, name, mode) => bucket.upload(file, {destination: name, resumable: mode === 'resumable', validation: 'crc32c', metadata: {contentType: 'text/x-test', metadata: {key: 'value'}}}),
  // This client retries an upload only with a precondition, and only by chunks: it
  // cannot resend a part of a whole file.
  retried: (file, name) => bucket.upload(file, {destination: name, resumable: true, chunkSize: 8 << 20, preconditionOpts: {ifGenerationMatch: 0}}),
  chunks: (file, name) => bucket.upload(file, {destination: name, resumable: true, chunkSize: 1 << 20}),
  download: (name, file) => bucket.file(name).download({destination: file, validation: 'crc32c'}),
  copy: (from, to) => bucket.file(from).copy(bucket.file(to)),
  metadata: async name => {
    const [m] = await bucket.file(name).getMetadata();
    assert.equal(m.contentType, 'text/x-test');
    assert.deepEqual(m.metadata, {key: 'value'});
    await bucket.file(name).setMetadata({cacheControl: 'no-store', metadata: {key: null, other: '2'}});
    const [changed] = await bucket.file(name).getMetadata();
    assert.equal(changed.cacheControl, 'no-store');
    assert.deepEqual(changed.metadata, {other: '2'});
  },
  list: async want => {
    const [files] = await bucket.getFiles();
    assert.deepEqual(files.map(f => f.name).sort(), want.split('\n'));
  },
  lifecycle: async () => {
    const rule = {action: {type: 'Delete'}, condition: {age: 30}};
    await bucket.addLifecycleRule(rule);
    await bucket.setCorsConfiguration([{origin: ['*'], method: ['GET'], responseHeader: ['x-a'], maxAgeSeconds: 60}]);
    const [m] = await bucket.getMetadata();
    assert.deepEqual(m.lifecycle.rule, [rule]);
    assert.equal(m.cors[0].maxAgeSeconds, 60);
  },
  delete: async () => {
    await bucket.deleteFiles();
    await bucket.delete();
    assert.equal((await bucket.exists())[0], false);
  },
};

operations[operation](...args).catch(err => {
  console.error(err);
  process.exitCode = 1;
});
