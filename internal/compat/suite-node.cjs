// suite-node.cjs is loaded before the tests of suite-node.sh and suite-node-system.sh: mocha --require.
//
// The system tests make a topic of Pub/Sub before their first test. The emulator has no Pub/Sub, so that
// topics and subscriptions exist only here, and get no message.
'use strict';
const https = require('https');
const Module = require('module');
const path = require('path');

// The tests send requests of their own, which must use the proxy, too.
if (process.env.HTTPS_PROXY) {
	const {HttpsProxyAgent} = Module.createRequire(path.join(process.cwd(), 'package.json'))('https-proxy-agent');
	https.globalAgent = new HttpsProxyAgent(process.env.HTTPS_PROXY);
}

class Subscription {
	create() { return Promise.resolve([this]); }
	delete() { return Promise.resolve(); }
	on(event, receive) {
		if (event === 'error') setImmediate(receive, new Error('there is no Pub/Sub'));
		return this;
	}
}

class Topic {
	constructor(name) {
		this.name = `projects/${process.env.PROJECT_ID}/topics/${name}`;
		this.iam = {setPolicy: policy => Promise.resolve([policy])};
	}
	subscription() { return new Subscription(); }
	getMetadata() { return Promise.resolve([{name: this.name}]); }
	delete() { return Promise.resolve(); }
}

class PubSub {
	createTopic(name) { return Promise.resolve([new Topic(name)]); }
	getTopics() { return Promise.resolve([[]]); }
}

// A checkout that was compiled with "npm run compile:cjs" lacks this file of its sources in build.
const helper = {getPackageJSON: () => require(path.join(process.cwd(), 'package.json'))};

const load = Module._load;
Module._load = function (request, ...rest) {
	if (request === '@google-cloud/pubsub') return {PubSub, Subscription, Topic};
	if (path.basename(request) === 'package-json-helper.cjs') return helper;
	return load.call(this, request, ...rest);
};
