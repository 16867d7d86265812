#include "bus/broker/broker_address.hpp"

#include <gtest/gtest.h>

namespace baton::bus {
namespace {

TEST(BrokerAddress, AUrlHasUserPasswordHostAndPort) {
  const auto address = parse_broker_address("amqp://me:p%40ss@rabbit.example:5673/");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->user, "me");
  EXPECT_EQ(address->password, "p@ss");
  EXPECT_EQ(address->host, "rabbit.example");
  EXPECT_EQ(address->port, 5673);
  EXPECT_FALSE(address->is_secure);
  EXPECT_EQ(address->virtual_host, "");
  EXPECT_EQ(address->shown(), "amqp://rabbit.example:5673");
  EXPECT_EQ(parse_broker_address("amqp://rabbit/my%2Fsite")->virtual_host, "my/site");
}

TEST(BrokerAddress, PortsGoWithoutSaying) {
  EXPECT_EQ(parse_broker_address("amqp://h")->port, 5672);
  EXPECT_EQ(parse_broker_address("amqps://h")->port, 5671);
  EXPECT_EQ(parse_broker_address("amqp://[::1]:7")->host, "::1");
}

TEST(BrokerAddress, AConnectionStringSignsAndIsSecureUnlessItIsAnEmulators) {
  const auto azure = parse_broker_address("Endpoint=sb://site.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey=a+b/c==");
  ASSERT_TRUE(azure) << azure.error().message;
  EXPECT_TRUE(azure->is_secure);
  EXPECT_EQ(azure->port, 5671);
  EXPECT_EQ(azure->key_name, "root");
  EXPECT_EQ(azure->key, "a+b/c==");
  const auto emulator = parse_broker_address("Endpoint=sb://localhost:5673;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true;");
  ASSERT_TRUE(emulator);
  EXPECT_FALSE(emulator->is_secure);
  EXPECT_EQ(emulator->port, 5673);
}

TEST(BrokerAddress, ANamespaceIsAHostWithTls) {
  for (const char* text : {"site.servicebus.windows.net", "sb://site.servicebus.windows.net/"}) {
    const auto address = parse_namespace(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->shown(), "amqps://site.servicebus.windows.net:5671");
  }
  EXPECT_EQ(parse_namespace("localhost:7")->port, 7);
  for (const char* text : {"", "sb://", "https://h", "h/x", "h:port", "Endpoint=sb://h;SharedAccessKeyName=n;SharedAccessKey=secret"}) {
    const auto address = parse_namespace(text);
    ASSERT_FALSE(address) << text;
    EXPECT_FALSE(address.error().message.contains("secret"));
  }
}

TEST(BrokerAddress, AWebsocketHasThePortsOfHttpUnlessThereIsAnother) {
  const auto shown = [](Result<BrokerAddress> address) {
    address->use_websocket();
    return address->shown();
  };
  EXPECT_EQ(shown(parse_namespace("site.servicebus.windows.net")), "wss://site.servicebus.windows.net:443/$servicebus/websocket");
  EXPECT_EQ(shown(parse_broker_address("amqp://h")), "ws://h:80/$servicebus/websocket");
  EXPECT_EQ(shown(parse_broker_address("amqps://[::1]:8443")), "wss://[::1]:8443/$servicebus/websocket");
}

TEST(BrokerAddress, WhatIsWrongIsToldWithoutSecrets) {
  for (const char* text : {"", "secret", "http://secret", "amqp://u:secret@", "amqp://secret:0", "amqp://h:secret", "amqp://:secret@h", "amqp://h/v?secret",
                           "Endpoint=sb://h;SharedAccessKey=secret", "Endpoint=h;SharedAccessKeyName=n;SharedAccessKey=secret",
                           "Endpoint=sb://h;SharedAccessKeyName=n;SharedAccessKey=secret;EntityPath=q",
                           "Server=h;Password=secret"}) {
    const auto address = parse_broker_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_FALSE(address.error().message.contains("secret")) << address.error().message;
  }
}

}  // namespace
}  // namespace baton::bus
